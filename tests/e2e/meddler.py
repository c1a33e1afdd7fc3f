#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""meddler.py PORT TO: carries connections to 127.0.0.1:TO, and does harm to each once, so that a test
can see that the client notices. What harm depends on the port: PORT and those behind it, in the order of
HARM."""
import asyncio
import sys

HARM = ["none", "flipped", "flipped-up", "lost", "twice", "other-order", "stalled", "cut"]
PLACE = 30000  # bytes into the stream, or the next piece behind that
port, to = int(sys.argv[1]), int(sys.argv[2])


def flip(piece):
    middle = len(piece) // 2
    return piece[:middle] + bytes([piece[middle] ^ 1]) + piece[middle + 1 :]


async def carry(reader, writer, harm, up):
    done = 0
    while piece := await reader.read(4096):
        before, done = done, done + len(piece)
        if before < PLACE <= done and up == (harm == "flipped-up"):
            if harm in ("flipped", "flipped-up"):
                piece = flip(piece)
            elif harm == "lost":
                piece = piece[1:]
            elif harm == "twice":
                piece += piece
            elif harm == "other-order":
                piece = piece[len(piece) // 2 :] + piece[: len(piece) // 2]
            elif harm == "stalled":
                await asyncio.sleep(60)
            elif harm == "cut":
                break
        writer.write(piece)
        await writer.drain()
    writer.close()


def taker(harm):
    async def take(reader, writer):
        back, forth = await asyncio.open_connection("127.0.0.1", to)
        await asyncio.gather(
            carry(reader, forth, harm, True), carry(back, writer, harm, False), return_exceptions=True
        )

    return take


async def main():
    servers = [await asyncio.start_server(taker(h), "127.0.0.1", port + i) for i, h in enumerate(HARM)]
    await asyncio.gather(*(s.serve_forever() for s in servers))


asyncio.run(main())
