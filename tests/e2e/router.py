#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A small HTTP router, as people write them in Python: every request goes to one upstream address,
over a new connection or over one of a pool (--keep-alive), and what comes back is passed on as it
comes, event streams included. Which worker is behind the address is not its business."""
import argparse
import asyncio
import signal
import sys

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web

# Of one connection only, or made anew for the next one.
OWN = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "te", "upgrade"}


def passed_on(headers):
    return [(k, v) for k, v in headers.items() if k.lower() not in OWN]


async def relay(request):
    session, upstream = request.app["session"], request.app["upstream"]
    body = await request.read()
    try:
        async with session.request(
            request.method, upstream + request.path_qs, data=body or None,
            headers=passed_on(request.headers), allow_redirects=False,
        ) as answer:
            out = web.StreamResponse(status=answer.status, headers=passed_on(answer.headers))
            if answer.content_length is not None:
                out.content_length = answer.content_length
            await out.prepare(request)
            async for piece in answer.content.iter_any():
                await out.write(piece)
            await out.write_eof()
            return out
    except ClientError as error:
        return web.Response(status=502, text=f"{type(error).__name__}: {error}\n")


async def serve(args):
    connector = (TCPConnector(limit=0, keepalive_timeout=60) if args.keep_alive
                 else TCPConnector(limit=0, force_close=True))
    async with ClientSession(connector=connector, timeout=ClientTimeout(total=60),
                             auto_decompress=False) as session:
        app = web.Application(client_max_size=1 << 24)
        app["session"], app["upstream"] = session, "http://" + args.upstream
        app.router.add_route("*", "/{path:.*}", relay)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        host, _, port = args.listen.rpartition(":")
        await web.TCPSite(runner, host.strip("[]"), int(port), backlog=4096).start()
        print("ready", flush=True)
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await stop.wait()
        await runner.cleanup()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", required=True, metavar="ADDR:PORT")
    parser.add_argument("--upstream", required=True, metavar="ADDR:PORT")
    parser.add_argument("--keep-alive", action="store_true", help="keep a pool of connections")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
