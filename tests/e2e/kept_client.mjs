// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// kept_client.mjs fetch|http URL COUNT BYTES: COUNT requests over a connection that Node keeps. Prints
// how often which status came; exit status 1 when an answer was not whole.
import http from "node:http";

const [way, url, count, size] = process.argv.slice(2);
const body = "x".repeat(Number(size)), seen = {};
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

const asked = {
	async fetch() {
		const r = await fetch(url, { method: "POST", body });
		return [r.status, await r.text()];
	},
	http: () => new Promise((resolve, reject) => {
		const request = http.request(url, { method: "POST", agent }, (r) => {
			let text = "";
			r.on("data", (part) => (text += part));
			r.on("end", () => resolve([r.statusCode, text]));
		});
		request.on("error", reject);
		request.end(body);
	}),
};

for (let i = 0; i < Number(count); i++) {
	const [status, text] = await asked[way]();
	if (status === 529) JSON.parse(text);
	else if (text !== "ok\n") throw new Error(`status ${status}: ${text}`);
	seen[status] = (seen[status] ?? 0) + 1;
}
console.log(Object.entries(seen).map(([status, n]) => `${status}=${n}`).join(" "));
process.exit(0);
