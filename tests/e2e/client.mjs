// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// client.mjs URL COUNT BYTES: COUNT requests through Node's fetch, each of which must get the whole 529.
const [url, count, size] = process.argv.slice(2);
const body = "x".repeat(Number(size));
let wrong = 0;
for (let i = 0; i < Number(count); i++) {
	try {
		const r = await fetch(url, { method: "POST", body });
		JSON.parse(await r.text());
		if (r.status !== 529) throw new Error(`status ${r.status}`);
	} catch (error) {
		if (wrong++ < 5) console.log(`request ${i}: ${error} ${error.cause ?? ""}`);
	}
}
process.exit(wrong ? 1 : 0);
