#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""slow_clients.py ADDRESS PORT PATH SECONDS: what a daemon may leave half done. Some clients connect
now and ask after SECONDS, some post a body that takes SECONDS more although they have their answer.
Prints "ready" when all are under way, then how each ended, one a line."""
import fcntl
import socket
import struct
import sys
import termios
import time

address, port, path, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
PIECES = 40
HEAD = f"POST {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"


def connect():
    s = socket.create_connection((address, port), timeout=5)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def answer(s):
    """-> the status of a whole answer, after which the server closed"""
    data = b""
    while piece := s.recv(65536):
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = [l.split(b":")[1] for l in head.lower().split(b"\r\n") if l.startswith(b"content-length:")]
    whole = int(length[0]) == len(body) if length else b"\r\n0\r\n\r\n" in body
    return f"{int(head.split()[1])}{'' if whole else ' cut short'}"


def unsent(s):
    return struct.unpack("i", fcntl.ioctl(s, termios.TIOCOUTQ, b"\0" * 4))[0]


def wait_sent(s):
    end = time.monotonic() + 3
    while unsent(s) and time.monotonic() < end:
        time.sleep(0.01)
    return f"{unsent(s)} bytes unsent"


waiting = [connect() for _ in range(4)]
uploads = [connect() for _ in range(4)]
for s in uploads:
    s.sendall((HEAD % (PIECES * 3000)).encode())
answers = [answer(s) for s in uploads]
print("ready", flush=True)

begin = time.monotonic()
for i in range(PIECES):
    for s in uploads:
        s.sendall(b"x" * 3000)
    time.sleep(max(0, begin + seconds * (i + 1) / PIECES - time.monotonic()))
for s, status in zip(uploads, answers):
    print(f"upload: {status}, {wait_sent(s)}")
for s in waiting:
    s.sendall((HEAD % 2).encode() + b"{}")
    print(f"waited: {answer(s)}")
