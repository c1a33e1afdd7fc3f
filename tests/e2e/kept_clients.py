#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""kept_clients.py LIBRARY URL COUNT BYTES: COUNT requests through a Python HTTP library that keeps its
connection. Prints how often which status came, as "200=3 529=7"; exit status 1 when an answer was not
whole."""
import asyncio
import collections
import http.client
import json
import sys
import urllib.parse

library, url, count, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
body = b"x" * size
seen = collections.Counter()


def judge(status, text):
    if status == 529:
        json.loads(text)
    elif text != b"ok\n":
        sys.exit(f"status {status}: {text[:80]!r}")
    seen[status] += 1


def with_http_client():
    to = urllib.parse.urlsplit(url)
    c = http.client.HTTPConnection(to.hostname, to.port, timeout=10)
    for _ in range(count):
        c.request("POST", to.path, body)
        r = c.getresponse()
        judge(r.status, r.read())


def with_requests():
    import requests

    with requests.Session() as session:
        for _ in range(count):
            r = session.post(url, data=body, timeout=10)
            judge(r.status_code, r.content)


def with_httpx():
    import httpx

    with httpx.Client(timeout=10) as client:
        for _ in range(count):
            r = client.post(url, content=body)
            judge(r.status_code, r.content)


async def with_aiohttp():
    import aiohttp

    async with aiohttp.ClientSession() as session:
        for _ in range(count):
            async with session.post(url, data=body) as r:
                judge(r.status, await r.read())


if library == "aiohttp":
    asyncio.run(with_aiohttp())
else:
    {"http_client": with_http_client, "requests": with_requests, "httpx": with_httpx}[library]()
print(" ".join(f"{status}={n}" for status, n in sorted(seen.items())))
