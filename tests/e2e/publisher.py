#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""publisher.py ENDPOINT PUBLISHER WORKER FILE: publishes the load of a worker as NVIDIA Dynamo does,
over ZeroMQ or, where the endpoint is "nats://HOST:PORT", over NATS, every 50 ms; the number of its used
KV blocks is what FILE says."""
import socket
import struct
import sys
import time

import msgpack
import zmq

endpoint, publisher, worker, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
SUBJECT = b"namespace.dynamo.component.backend.endpoint.generate.kv_metrics"


def over_zmq():
    out = zmq.Context().socket(zmq.PUB)
    out.bind(endpoint)
    return lambda sequence, envelope: out.send_multipart([
        b"kv_metrics", struct.pack(">Q", publisher), struct.pack(">Q", sequence),
        struct.pack(">BI", 1, len(envelope)) + envelope])


def over_nats():
    host, port = endpoint.removeprefix("nats://").split(":")
    out = socket.create_connection((host, int(port)), timeout=5)
    out.sendall(b'CONNECT {"verbose":false}\r\n')
    return lambda _, envelope: out.sendall(
        b"PUB %s %d\r\n%s\r\n" % (SUBJECT, len(envelope), envelope))


send = over_nats() if endpoint.startswith("nats:") else over_zmq()
for sequence in range(1 << 32):
    with open(path) as f:
        used = int(f.read() or 0)
    payload = msgpack.packb({
        "worker_id": worker, "dp_rank": 0, "active_decode_blocks": None,
        "active_prefill_tokens": None, "kv_used_blocks": used})
    send(sequence, msgpack.packb({
        "topic": "kv_metrics", "publisher_id": publisher, "sequence": sequence,
        "published_at": int(time.time() * 1000), "payload": payload}))
    time.sleep(0.05)
