#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""kept.py ask HOST PORT: one connection, kept. Each line of input, "METHOD PATH BYTES", is a request, and
what came is printed: "200 keep" or "529 close", or the error; behind it, where the server tells, whether
it saw the body that was sent. END waits for the other side's: "end". A connection that has ended is not
made anew.
kept.py serve PORT: a server that tells what it saw."""
import hashlib
import http.client
import http.server
import json
import os
import socket
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = json.dumps({"seen": hashlib.sha256(body).hexdigest()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
    request_queue_size = 128


def ask(connection, method, path, size):
    body = os.urandom(size) if size else None
    connection.request(method, path, body)
    answer = connection.getresponse()
    text = answer.read()
    result = f"{answer.status} {'close' if answer.will_close else 'keep'}"
    if answer.status == 200 and b"seen" in text:
        seen = json.loads(text)["seen"] == hashlib.sha256(body or b"").hexdigest()
        result += " whole" if seen else " CORRUPT"
    elif answer.status != 200 and answer.getheader("Content-Type") == "application/json":
        json.loads(text)
    return result


def other_end(connection):
    return "a byte" if connection.sock.recv(1) else "end"


def client(host, port):
    connection = http.client.HTTPConnection(host, port, timeout=10)
    connection.connect()
    connection.auto_open = 0
    for line in sys.stdin:
        try:
            if line.strip() == "END":
                print(other_end(connection), flush=True)
                continue
            method, path, size = line.split()
            print(ask(connection, method, path, int(size)), flush=True)
        except (OSError, http.client.HTTPException) as error:
            print(type(error).__name__, flush=True)


if sys.argv[1] == "serve":
    Server(("::", int(sys.argv[2])), Handler).serve_forever()
else:
    client(sys.argv[2], int(sys.argv[3]))
