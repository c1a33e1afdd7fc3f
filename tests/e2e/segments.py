#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""segments.py FILE PORT: reads a capture of one TCP connection to PORT and prints its segments, one a
line: "> SYN", "< SYN ACK", "> PSH ACK 160" (payload bytes), in the order seen. Sequence numbers that
were seen before are marked "again"; IP and TCP checksums that are wrong, and acknowledgements of what
was never sent, are errors."""
import struct
import sys

FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG")
ORDER = ("SYN", "RST", "PSH", "FIN", "URG", "ACK")


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total  # 0xffff when the checksum is part of the data and right


def frames(path):
    with open(path, "rb") as f:
        head = f.read(24)
        order = "<" if head[:4] == b"\xd4\xc3\xb2\xa1" else ">"
        while record := f.read(16):
            yield f.read(struct.unpack(order + "8xII", record)[0])


def parse(frame):
    """-> the TCP segment and the pseudo header that its checksum covers, or None"""
    kind, ip = struct.unpack("!H", frame[12:14])[0], frame[14:]
    if kind == 0x0800 and ip[9] == 6:
        length = ip[0] % 16 * 4
        if checksum(ip[:length]) != 0xFFFF:
            sys.exit("a wrong IPv4 checksum")
        tcp = ip[length:struct.unpack("!H", ip[2:4])[0]]
        return tcp, ip[12:20] + struct.pack("!HH", 6, len(tcp))
    if kind == 0x86DD and ip[6] == 6:
        tcp = ip[40:40 + struct.unpack("!H", ip[4:6])[0]]
        return tcp, ip[8:40] + struct.pack("!II", len(tcp), 6)
    return None


sent = {}  # by direction: sequence numbers used, SYN and FIN included
for frame in frames(sys.argv[1]):
    found = parse(frame)
    if not found:
        continue
    tcp, pseudo = found
    sport, dport, seq, ack, offset, flags = struct.unpack("!HHIIBB", tcp[:14])
    if int(sys.argv[2]) not in (sport, dport):
        continue
    way = ">" if dport == int(sys.argv[2]) else "<"
    names = {n for i, n in enumerate(FLAGS) if flags >> i & 1}
    payload = len(tcp) - (offset >> 4) * 4
    line = [way] + [n for n in ORDER if n in names] + ([str(payload)] if payload else [])
    if checksum(pseudo + tcp) != 0xFFFF:
        sys.exit(f"a wrong TCP checksum: {' '.join(line)}")
    used = payload + len(names & {"SYN", "FIN"})
    numbers = {(seq + i) % 2**32 for i in range(used)}
    other = sent.get("<>"[way == "<"], set())
    if "ACK" in names and (ack - 1) % 2**32 not in other:
        sys.exit(f"acknowledges what was never sent: {' '.join(line)}")
    if numbers & sent.setdefault(way, set()):
        line.append("again")
    sent[way] |= numbers
    print(" ".join(line))
