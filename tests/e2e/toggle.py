#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""toggle.py SOCKET HZ SECONDS: saturates and opens all pools in turn over the control socket, at a
steady rate, and prints how many changes were made. Ends in the open state."""
import http.client
import json
import socket
import sys
import time

path, hz, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])


class Control(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)


control = Control("localhost")
begin = time.monotonic()
changes = 0
while changes % 2 or time.monotonic() < begin + seconds:
    state = "open" if changes % 2 else "saturated"
    control.request("POST", "/v1/force", json.dumps({"state": state, "for_ms": 60000}))
    answer = control.getresponse()
    if answer.status != 200 or json.load(answer)["pools"][0]["state"] != state:
        sys.exit(f"force {state}: status {answer.status}")
    changes += 1
    time.sleep(max(0, begin + changes / hz - time.monotonic()))
print(changes)
