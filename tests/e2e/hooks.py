#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""hooks.py: lists the BPF programs on the interfaces of this network namespace, one a line: interface,
hook, program id and name: "v0 xdp 31 spillway_xdp". Hooks are xdp, tcx (which bpftool 7.1 does not know
yet) and clsact, and with -out the two on the way out; of one hook in the order in which they run.
hooks.py tcx PROGRAM INTERFACE: attaches a pinned program to TCX ingress and holds it until it is ended."""
import ctypes
import json
import os
import platform
import signal
import socket
import struct
import subprocess
import sys

BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
OBJ_GET, PROG_QUERY, LINK_CREATE = 7, 16, 28
TCX_INGRESS, TCX_EGRESS = 46, 47


def bpf(command, attributes):
    size = max(len(attributes), 144)
    attributes = ctypes.create_string_buffer(attributes.ljust(size, b"\0"), size)
    result = ctypes.CDLL(None, use_errno=True).syscall(BPF, command, attributes, size)
    if result < 0:
        raise OSError(ctypes.get_errno(), "bpf()")
    return result, attributes.raw


def run(*command):
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout or "[]")


def tcx(index, hook):
    ids = (ctypes.c_uint32 * 64)()
    query = struct.pack("=IIIIQII", index, hook, 0, 0, ctypes.addressof(ids), len(ids), 0)
    try:
        count = struct.unpack("=I", bpf(PROG_QUERY, query)[1][24:28])[0]
    except OSError:  # before 6.6
        count = 0
    return list(ids)[:count]


def clsact(name, direction):
    if "clsact" not in [q["kind"] for q in run("tc", "-j", "qdisc", "show", "dev", name)]:
        return []
    filters = run("tc", "-j", "filter", "show", "dev", name, direction)
    return [f["options"]["prog"]["id"] for f in filters if "prog" in f.get("options", {})]


def main():
    for interface in run("ip", "-j", "link"):
        name = interface["ifname"]
        xdp = interface.get("xdp", {}).get("prog")
        index = interface["ifindex"]
        hooks = {"xdp": [xdp["id"]] if xdp else [],
                 "tcx": tcx(index, TCX_INGRESS), "clsact": clsact(name, "ingress"),
                 "tcx-out": tcx(index, TCX_EGRESS), "clsact-out": clsact(name, "egress")}
        for hook, ids in hooks.items():
            for i in ids:
                print(name, hook, i, run("bpftool", "-j", "prog", "show", "id", str(i))["name"])


if len(sys.argv) == 4:
    path = ctypes.create_string_buffer(os.fsencode(sys.argv[2]))
    program = bpf(OBJ_GET, struct.pack("=QII", ctypes.addressof(path), 0, 0))[0]
    bpf(LINK_CREATE, struct.pack("=IIII", program, socket.if_nametoindex(sys.argv[3]), TCX_INGRESS, 0))
    signal.pause()
main()
