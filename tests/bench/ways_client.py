#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Asks for refused and for admitted things in turn, on connections that it would like to keep, and says
what became of them. Usage: ways_client.py ADDRESS PORT CONNECTIONS CYCLES BYTES-OF-A-REFUSED-REQUEST"""
import collections
import json
import socket
import sys

address, port, connections, cycles, size = sys.argv[1], *map(int, sys.argv[2:])


def head(method, path, extra=""):
    return f"{method} {path} HTTP/1.1\r\nHost: {address}\r\n{extra}"


def sized(text):
    return (text + "X-Pad: " + "x" * (size - len(text) - 11) + "\r\n\r\n").encode()


UPLOAD = b"x" * 100000
CYCLE = [
    (529, sized(head("GET", "/v1/refuse"))),
    (200, head("GET", "/admit", "\r\n").encode()),
    (529, sized(head("GET", "/v1/refuse"))),
    (200, head("POST", "/admit", f"Content-Length: {len(UPLOAD)}\r\n\r\n").encode() + UPLOAD),
]


def ask(sock, request):
    """The status, and whether the connection can go on."""
    sock.sendall(request)
    got = b""
    while b"\r\n\r\n" not in got:
        more = sock.recv(65536)
        if not more:
            raise EOFError
        got += more
    fields, body = got.split(b"\r\n\r\n", 1)
    length = int(fields.lower().split(b"content-length:")[1].split()[0])
    while len(body) < length:
        more = sock.recv(65536)
        if not more:
            raise EOFError
        body += more
    if len(body) > length or not fields.startswith(b"HTTP/1.1 "):
        raise ValueError
    return int(fields[9:12]), b"connection: close" not in fields.lower()


def walk(seen):
    sock = None
    for want, request in CYCLE * cycles:
        if not sock:
            sock = socket.create_connection((address, port), 2)
            seen["opened"] += 1
        status, kept = ask(sock, request)
        seen["right" if status == want else "wrong"] += 1
        if not kept:
            sock.close()
            sock = None


results = collections.Counter(opened=0, right=0, wrong=0, hung=0, reset=0, ended=0, garbled=0)
for _ in range(connections):
    try:
        walk(results)
    except TimeoutError:
        results["hung"] += 1
    except OSError:
        results["reset"] += 1
    except EOFError:
        results["ended"] += 1
    except (ValueError, IndexError):
        results["garbled"] += 1
print(json.dumps(results))
