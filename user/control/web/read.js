// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Reads the daemon: the status every second, the history beside it, events as they come, each with
// the token where one is asked for. Shows nothing itself.
'use strict';

const PERIOD_MS = 1000;
const HISTORY_MS = 2000;
const PATIENCE_MS = 5000; // for one answer
const TOKEN = 'spillway-token';

// A token may come with a link, as #token=...; it does not stay in the address bar.
function takeToken() {
	const given = location.hash.startsWith('#token=') && location.hash.slice(7);

	if (given) {
		keepToken(given);
		history.replaceState(null, '', location.pathname + location.search);
	}
	return Boolean(given);
}

function keepToken(token) {
	sessionStorage.setItem(TOKEN, token.trim());
}

function sleep(ms) {
	return new Promise((done) => setTimeout(done, ms));
}

// Until somebody looks at the page.
function looked() {
	return new Promise((done) => {
		const look = () => {
			if (document.hidden)
				return;
			document.removeEventListener('visibilitychange', look);
			done();
		};
		document.addEventListener('visibilitychange', look);
		look();
	});
}

// The answer to a GET, or an error whose `status` is the answer's, if there was one.
async function get(path, signal) {
	const token = sessionStorage.getItem(TOKEN);
	const usable = token && /^[\x21-\x7e]+$/.test(token);
	const answer = await fetch(path, {
		cache: 'no-store',
		headers: usable ? {Authorization: `Bearer ${token}`} : {},
		signal,
	});

	if (!answer.ok)
		throw Object.assign(new Error(`the answer is ${answer.status}`),
				    {status: answer.status});
	return answer;
}

async function getJson(path) {
	return (await get(path, AbortSignal.timeout(PATIENCE_MS))).json();
}

// Server-sent events, read by hand since EventSource sends no token. Returns when they end.
async function readEvents(tell) {
	const answer = await get('/v1/events');
	const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = '', type = '', data = '';

	tell('following', {});
	for (;;) {
		const {value, done} = await reader.read();
		const lines = (rest + (value || '')).split('\n');

		if (done)
			return;
		rest = lines.pop();
		for (const line of lines) {
			if (line.startsWith('event:')) {
				type = line.slice(6).trim();
			} else if (line.startsWith('data:')) {
				data += line.slice(5);
			} else if (line.trim() === '') {
				if (type && data)
					tell(type, JSON.parse(data));
				type = data = '';
			}
		}
	}
}

// Follows events for as long as the page lives.
async function follow(tell) {
	for (;;) {
		try {
			await readEvents(tell);
			tell('ended', {why: 'the stream has ended'});
		} catch (e) {
			tell('ended', {why: e.status === 503 ? 'too many follow them' : e.message});
		}
		await sleep(2 * PERIOD_MS);
		await looked();
	}
}

// Reads for as long as the page lives, and tells `page` of it: status(s), history(h), event(type, e),
// gone(error); ask(again) gives a promise that ends when there is another token to try. A daemon that
// takes long to answer is asked less often.
async function run(page) {
	let asked = false, following = false, historyAt = -Infinity;

	for (;;) {
		const began = performance.now();
		let status, past, error;

		try {
			status = await getJson('/v1/status');
			if (began - historyAt >= HISTORY_MS - PERIOD_MS / 2) {
				past = await getJson('/v1/history');
				historyAt = began;
			}
		} catch (e) {
			error = e;
		}
		if (error && error.status === 401) {
			await page.ask(asked);
			asked = true;
			continue;
		}
		if (past)
			page.history(past);
		if (status)
			page.status(status);
		if (error) {
			page.gone(error);
		} else {
			asked = false;
			if (!following)
				follow(page.event);
			following = true;
		}
		const took = performance.now() - began;

		await sleep(Math.max(PERIOD_MS - took, 3 * took));
		await looked();
	}
}
