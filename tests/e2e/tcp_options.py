#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tcp_options.py HOST PORT HOST-NETNS [MSS]: opens a connection, asks GET /health on it, and while it
is still open prints which of the client's TCP options the server's kernel knows, in the words of
`ss`: "ts sack wscale:10 mss:1448". With MSS, the client wants segments of that size."""
import re
import socket
import subprocess
import sys

host, port, netns = sys.argv[1], int(sys.argv[2]), sys.argv[3]
s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
if len(sys.argv) > 4:
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, int(sys.argv[4]))
s.settimeout(5)
s.connect((host, port))
s.sendall(b"GET /health HTTP/1.1\r\nHost: test\r\n\r\n")
answer = s.recv(4096)
if not answer.startswith(b"HTTP/1.1 200"):
    sys.exit(f"not healthy: {answer!r}")
text = subprocess.run(
    ["nsenter", "--net=" + netns, "ss", "-Htino", "state", "established"]
    + ["sport", f"= :{port}", "and", "dport", f"= :{s.getsockname()[1]}"],
    capture_output=True, text=True, check=True).stdout
words = re.findall(r"\b(?:ts|sack|ecn|wscale:\d+|mss:\d+)(?=[ ,])", text)
print(" ".join(words))
