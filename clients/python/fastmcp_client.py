"""FastMCP's client: lists, calls, asks for what is hidden, and prints what came back.

Reads its order from the environment as JSON, prints one line of JSON, judges nothing.
"""

import asyncio
import json
import os
from importlib.metadata import version

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from mcp.shared.exceptions import MCPError


def text_of(result):
    return "".join(getattr(block, "text", "") for block in result.content)


async def refusal_of(client, name):
    try:
        result = await client.call_tool(name, {}, raise_on_error=False)
    except MCPError as error:
        return f"{error.error.code} {error.error.message}"
    return f"result {text_of(result)}"


async def main():
    order = json.loads(os.environ["CLIENT_ORDER"])
    headers = {"authorization": f"Bearer {order['token']}"}
    transport = StreamableHttpTransport(order["url"], headers=headers)
    async with Client(transport) as client:
        listed = [tool.name for tool in await client.list_tools()]
        called = await client.call_tool(order["call"]["name"], order["call"]["arguments"])
        leaked = await client.call_tool(order["leak"]["name"], order["leak"]["arguments"])
        print(
            json.dumps(
                {
                    "sdk": version("fastmcp"),
                    "protocol": "not told",
                    "listed": listed,
                    "called": text_of(called),
                    "leaked": text_of(leaked),
                    "hidden": await refusal_of(client, order["hidden"]),
                    "unknown": await refusal_of(client, order["unknown"]),
                }
            )
        )


asyncio.run(main())
