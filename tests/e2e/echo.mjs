// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// echo.mjs HOST PORT: tools/echo on Node's http server.
import http from "node:http";

const STARTS = 1n << 21n, BODY_MAX = 1 << 20, MASK = (1n << 64n) - 1n;

function mix(n) {
	n = (n + 0x9e3779b97f4a7c15n) & MASK;
	n = ((n ^ (n >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
	n = ((n ^ (n >> 27n)) * 0x94d049bb133111ebn) & MASK;
	return n ^ (n >> 31n);
}

const table = Buffer.alloc(Number(STARTS) + BODY_MAX);
for (let i = 0; i < table.length; i += 8) table.writeBigUInt64LE(mix(BigInt(i / 8)), i);
const slice = (tag, length) => {
	const start = Number(mix(tag) % STARTS);
	return table.subarray(start, start + length);
};

const server = http.createServer((request, response) => {
	const parts = [];
	request.on("data", (part) => parts.push(part));
	request.on("end", () => {
		const query = new URL(request.url, "http://x").searchParams, body = Buffer.concat(parts);
		if (!query.get("t")) return response.end("ok\n");
		const tag = BigInt("0x" + query.get("t")), hex = tag.toString(16).padStart(16, "0");
		const intact = body.equals(slice(tag, body.length)) ? "intact" : "CORRUPT";
		const line = Buffer.from(`${hex} ${request.method} ${body.length} ${intact}\n`);
		const rest = slice(~tag & MASK, Number(query.get("r")));
		if (tag % 4n) {
			response.setHeader("Content-Length", line.length + rest.length);
			response.write(line);
			return response.end(rest);
		}
		response.write(line); // no length: in chunks
		for (let at = 0; at < rest.length; at += 9999) response.write(rest.subarray(at, at + 9999));
		response.end();
	});
});
server.keepAliveTimeout = 60000;
server.listen({ host: process.argv[2], port: Number(process.argv[3]), backlog: 4096 });
