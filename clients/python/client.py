"""One client of the Python SDK: lists, calls, asks for what is hidden, and prints what came back.

Reads its order from the environment as JSON, prints one line of JSON, judges nothing.
"""

import asyncio
import json
import os
from importlib.metadata import version

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError


def text_of(result):
    return "".join(getattr(block, "text", "") for block in result.content)


async def refusal_of(client, name, arguments):
    try:
        result = await client.call_tool(name, arguments)
    except MCPError as error:
        return f"{error.error.code} {error.error.message}"
    return f"result {text_of(result)}"


async def main():
    order = json.loads(os.environ["CLIENT_ORDER"])
    headers = {"authorization": f"Bearer {order['token']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(order["url"], http_client=http)
        async with Client(transport, mode=order["mode"]) as client:
            listed, cursor = [], None
            while True:
                page = await client.list_tools(cursor=cursor)
                listed += [tool.name for tool in page.tools]
                cursor = page.next_cursor
                if cursor is None:
                    break
            called = await client.call_tool(order["call"]["name"], order["call"]["arguments"])
            leaked = await client.call_tool(order["leak"]["name"], order["leak"]["arguments"])
            print(
                json.dumps(
                    {
                        "sdk": version("mcp"),
                        "protocol": client.protocol_version,
                        "listed": listed,
                        "called": text_of(called),
                        "leaked": text_of(leaked),
                        "hidden": await refusal_of(client, order["hidden"], {}),
                        "unknown": await refusal_of(client, order["unknown"], {}),
                    }
                )
            )


asyncio.run(main())
