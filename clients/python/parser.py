"""Reads bodies as Python does: one in hexadecimal a line, one line of JSON back with what each parser read.

Numbers are told as text, so that nothing is lost on the way; members are sorted.
"""

import json
import sys

import pydantic_core

sys.setrecursionlimit(5_000)


def told(value):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return {"n": repr(value)}
    if isinstance(value, list):
        return {"a": [told(item) for item in value]}
    return {"o": [[name, told(value[name])] for name in sorted(value)]}


def reading(parse, body):
    try:
        return {"ok": True, "value": told(parse(body))}
    except (ValueError, RecursionError):
        return {"ok": False}


for line in sys.stdin:
    body = bytes.fromhex(line.strip())
    print(
        json.dumps(
            {
                "Python json": reading(json.loads, body),
                "pydantic_core": reading(pydantic_core.from_json, body),
            }
        )
    )
