#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An HTTP server that breaks its word in the way that the path names, so that a test can see that
the checking client notices. Usage: liar.py PORT. What an honest server does is not tested here."""
import socket
import struct
import sys
import threading
import time

JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
SSE = JSON.replace(b"application/json", b"text/event-stream")
ANSWERS = {
    b"/good": JSON + b"Content-Length: 12\r\n\r\n{\"code\":200}",
    b"/chunks": SSE + b"Transfer-Encoding: chunked\r\n\r\n"
                      b"6\r\ndata: \r\n8\r\n[DONE]\n\n\r\n0\r\n\r\n",
    b"/interim": b"HTTP/1.1 100 Continue\r\n\r\n" + JSON + b"Content-Length: 2\r\n\r\n{}",
    b"/short": JSON + b"Content-Length: 13\r\n\r\n{\"code\":200}",
    b"/short-chunks": SSE + b"Transfer-Encoding: chunked\r\n\r\n6\r\ndata: \r\n",
    b"/short-head": JSON,
    b"/extra": JSON + b"Content-Length: 2\r\n\r\n{}x",
    b"/other-code": JSON + b"Content-Length: 12\r\n\r\n{\"code\":529}",
    b"/no-json": JSON + b"Content-Length: 6\r\n\r\n<html>",
    b"/no-done": SSE + b"Content-Length: 6\r\n\r\ndata: ",
    b"/bad-chunk": SSE + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"/no-http": b"SSH-2.0-OpenSSH\r\n\r\n",
    b"/open": JSON + b"Content-Length: 2\r\n\r\n{}",
    b"/reset": JSON,
    b"/silent": b"",
}


def serve(conn):
    request = conn.recv(65536)
    if not request:
        return
    path = request.split(b" ")[1]
    conn.sendall(ANSWERS[path])
    if path in (b"/open", b"/silent"):
        time.sleep(8)
    if path == b"/reset":  # closing with this option set sends RST
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
