// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The page as a whole: who is asked, whether it answers, and what goes where.

const UNFOLDED = 4;  // with more pools than this they start folded, but for those not open
const OVER = 3;	     // readings that a rate is taken over

// Rates from totals: of each key the last readings as [uptime_ms, total].
function rates() {
	const kept = new Map();

	return (key, at, total) => {
		let list = kept.get(key) || [];
		const last = list[list.length - 1];

		if (last && (at < last[0] || total < last[1]))
			list = []; // another daemon, or counted anew
		list = [...list, [at, total]].slice(-OVER - 1);
		kept.set(key, list);
		const [from, n] = list[0];

		return at > from ? (total - n) * 1000 / (at - from) : null;
	};
}

function factsView() {
	const update = keyed(byId('facts'), () => {
		const value = el('dd'), name = el('dt');

		return {node: el('div', {}, name, value), update(f) {
			put(name, f.name);
			put(value, f.text);
		}};
	}, (f) => f.name);

	return (s) => update([
		{name: 'version', text: s.version}, {name: 'up', text: span(s.uptime_ms)},
		...(s.heartbeat ? [{name: 'heartbeat margin', text: `${age(s.heartbeat.margin_ms)} of `
			+ age(s.heartbeat.deadline_ms)}] : [])]);
}

function textList(parent, tag) {
	return keyed(parent, (text) => {
		const node = el(tag, {}, text);

		return {node, update() {}};
	}, (text) => text);
}

function statusView() {
	const rate = rates(), facts = factsView();
	const notes = textList(byId('attention'), 'li');
	const pools = keyed(byId('pools'), poolView, (p) => p.name);
	const listeners = keyed(byId('listeners'), listenerView, (l) => `${l.address} ${l.netns}`);
	const sources = keyed(byId('sources'), sourceView, (s) => s.key);
	let past = new Map();

	// What the listeners of a pool shed, for a daemon that was just started.
	function withRates(p, at) {
		return {...p, history: past.get(p.name), rate: {
			shed: rate(`shed ${p.name}`, at, p.shed),
			admitted: rate(`admitted ${p.name}`, at, p.admitted)}};
	}

	function title(s) {
		const shut = s.pools.filter((p) => p.state !== 'open');

		document.title = (shut.length ? `${SIGNS[shut[0].state]} ${shut.length > 1
			? `${shut.length} pools not open` : `${shut[0].name} ${shut[0].state}`}`
			: '● open') + ` – Spillway`;
	}

	return {
		history(h) {
			past = new Map(h.pools.map((p) => [p.name, p]));
		},
		status(s) {
			const at = s.uptime_ms, list = attention(s), rows = sourceRows(s);

			title(s);
			facts(s);
			notes(list);
			show(byId('attention'), list.length);
			pools(s.pools.map((p) => ({...withRates(p, at), unfolded:
				s.pools.length <= UNFOLDED || p.state !== 'open'})));
			listeners(s.listeners.map((l) => ({...l, rate:
				rate(`listener ${l.address} ${l.netns}`, at, l.shed)})));
			put(byId('planes'), s.planes.map(planeText).join('. '));
			put(byId('feeds'), feedsText(s));
			sources(rows);
			show(byId('sources').parentNode, rows.length);
		},
	};
}

function start() {
	const view = statusView(), addEvent = eventList(byId('events'));
	const link = byId('link'), gone = byId('gone'), ask = byId('ask');
	let heardAt = 0, error = null;

	// What is seen of a daemon that does not answer is what it last said.
	function tellLink() {
		document.body.classList.toggle('gone', Boolean(error));
		show(gone, error);
		mark(link, 'data-state', error ? 'gone' : heardAt ? 'live' : 'new');
		put(link, error ? '✕ no answer' : heardAt ? '● live' : 'connecting');
		if (!error)
			return put(byId('why'), '');
		put(byId('why'), error.status || error.name === 'SyntaxError'
			? `spillwayd does not answer as it should: ${error.message}.`
			: `spillwayd does not answer${error.name === 'TimeoutError'
				? ` within ${span(PATIENCE_MS)}` : ''}. It is asked again every second.`);
		put(byId('since'), heardAt ? `What you see is from ${clock(heardAt)}, `
			+ `${span(Date.now() - heardAt)} ago.` : '');
	}

	function asked(again) {
		byId('main').hidden = !heardAt;
		show(ask, true);
		put(byId('denied'), again ? 'The daemon does not take this token.' : '');
		byId('token').focus();
		return new Promise((done) => {
			const taken = () => {
				ask.onsubmit = window.onhashchange = null;
				byId('token').value = '';
				show(ask, false);
				done();
			};
			ask.onsubmit = (e) => {
				e.preventDefault();
				keepToken(byId('token').value);
				taken();
			};
			window.onhashchange = () => takeToken() && taken();
		});
	}

	function event(type, e) {
		if (type === 'following')
			put(byId('following'), 'live, newest first');
		else if (type === 'ended')
			put(byId('following'), `not followed now: ${e.why}`);
		else
			addEvent(type, e);
	}

	takeToken();
	put(byId('host'), location.host);
	setInterval(tellLink, 1000);
	run({
		history: view.history,
		event,
		ask: asked,
		status(s) {
			heardAt = Date.now();
			error = null;
			byId('main').hidden = false;
			view.status(s);
			tellLink();
		},
		gone(e) {
			error = e;
			tellLink();
		},
	});
}

start();
