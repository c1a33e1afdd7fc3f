#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""echo.py HOST PORT: tools/echo on Python's aiohttp."""
import struct
import sys

from aiohttp import web

STARTS, BODY_MAX, MASK = 1 << 21, 1 << 20, (1 << 64) - 1


def mix(n):
    n = (n + 0x9E3779B97F4A7C15) & MASK
    n = ((n ^ n >> 30) * 0xBF58476D1CE4E5B9) & MASK
    n = ((n ^ n >> 27) * 0x94D049BB133111EB) & MASK
    return n ^ n >> 31


TABLE = b"".join(struct.pack("<Q", mix(i)) for i in range((STARTS + BODY_MAX) // 8))


def piece(tag, length):
    start = mix(tag) % STARTS
    return TABLE[start : start + length]


async def answer(request):
    body = await request.read()
    if "t" not in request.query:
        return web.Response(text="ok\n")
    tag = int(request.query["t"], 16)
    intact = "intact" if body == piece(tag, len(body)) else "CORRUPT"
    line = f"{tag:016x} {request.method} {len(body)} {intact}\n".encode()
    rest = piece(~tag & MASK, int(request.query["r"]))
    if tag % 4:
        return web.Response(body=line + rest)
    response = web.StreamResponse()
    response.enable_chunked_encoding()
    await response.prepare(request)
    for part in (line, rest[: len(rest) // 2], rest[len(rest) // 2 :]):
        if part:
            await response.write(part)
    await response.write_eof()
    return response


app = web.Application(client_max_size=4 << 20)
app.router.add_route("*", "/{path:.*}", answer)
web.run_app(app, host=sys.argv[1], port=int(sys.argv[2]), print=None, keepalive_timeout=60, access_log=None)
