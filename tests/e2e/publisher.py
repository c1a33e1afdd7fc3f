#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""publisher.py ENDPOINT PUBLISHER WORKER FILE: publishes the load of a worker over ZeroMQ as NVIDIA
Dynamo does, every 50 ms; the number of its used KV blocks is what FILE says."""
import struct
import sys
import time

import msgpack
import zmq

endpoint, publisher, worker, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
out = zmq.Context().socket(zmq.PUB)
out.bind(endpoint)
for sequence in range(1 << 32):
    with open(path) as f:
        used = int(f.read() or 0)
    payload = msgpack.packb({
        "worker_id": worker, "dp_rank": 0, "active_decode_blocks": None,
        "active_prefill_tokens": None, "kv_used_blocks": used})
    envelope = msgpack.packb({
        "topic": "kv_metrics", "publisher_id": publisher, "sequence": sequence,
        "published_at": int(time.time() * 1000), "payload": payload})
    out.send_multipart([b"kv_metrics", struct.pack(">Q", publisher), struct.pack(">Q", sequence),
                        struct.pack(">BI", 1, len(envelope)) + envelope])
    time.sleep(0.05)
