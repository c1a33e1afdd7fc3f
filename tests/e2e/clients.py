#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""clients.py LIBRARY URL COUNT BYTES: sends COUNT requests through a Python HTTP library, each on a
connection of its own, and checks that each gets the whole 529. Prints what went wrong; exit status 1
when anything did."""
import asyncio
import http.client
import json
import sys
import urllib.parse

library, url, count, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
body = b"x" * size
headers = {"Content-Type": "application/json"}
wrong = []


def judge(i, status, text):
    try:
        if status != 529:
            raise ValueError(f"status {status}")
        json.loads(text)
    except ValueError as error:
        wrong.append(f"request {i}: {error}: {text[:80]!r}")


def with_http_client():
    to = urllib.parse.urlsplit(url)
    for i in range(count):
        c = http.client.HTTPConnection(to.hostname, to.port, timeout=10)
        c.request("POST", to.path, body, headers)
        r = c.getresponse()
        judge(i, r.status, r.read())
        c.close()


def with_requests():
    import requests

    for i in range(count):
        r = requests.post(url, data=body, headers=headers, timeout=10)
        judge(i, r.status_code, r.content)


def with_httpx():
    import httpx

    for i in range(count):
        r = httpx.post(url, content=body, headers=headers, timeout=10)
        judge(i, r.status_code, r.content)


def with_aiohttp():
    import aiohttp

    async def one(session, i):
        async with session.post(url, data=body, headers=headers) as r:
            judge(i, r.status, await r.read())

    async def run():
        timeout = aiohttp.ClientTimeout(total=20)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            for start in range(0, count, 10):
                await asyncio.gather(*(one(session, i) for i in range(start, min(start + 10, count))))

    asyncio.run(run())


try:
    globals()["with_" + library]()
except Exception as error:  # whatever a library raises is a lost answer
    wrong.append(f"{type(error).__name__}: {error}")
for line in wrong[:5]:
    print(line)
sys.exit(bool(wrong))
