// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// One pool of the page: what state it is in and why, its chart, and what its workers have in common.
// Each worker is in workers.js.

const SHORT = {
	active_decode_blocks_threshold: 'decode blocks',
	active_prefill_tokens_threshold: 'prefill tokens',
	active_prefill_tokens_threshold_frac: 'prefill share',
	max_num_queued_reqs: 'requests',
	max_num_queued_tokens: 'queued tokens',
	max_queued_requests: 'queued requests',
	max_concurrent_requests: 'concurrent',
};
const SIGNS = {open: '●', saturated: '▲', draining: '◆', unavailable: '✕'};

function short(limit) {
	return SHORT[limit] || limit;
}

// ---- what the status means ---------------------------------------------------------------------

function isWorse(a, b) {
	return a.state === b.state || (a.state !== 'over' && b.state !== 'over') ? a.near > b.near
		: a.state === 'over';
}

// For each limit of a worker the check that is worst over its ranks.
function worstChecks(worker) {
	const worst = new Map();
	const all = worker.ranks.flatMap((r) => r.checks.map((c) => ({...c, rank: r.rank})));

	for (const c of [...all, ...worker.checks]) {
		const it = {...c, near: nearness(c.measured, c.threshold)};

		if (!worst.has(c.limit) || isWorse(it, worst.get(c.limit)))
			worst.set(c.limit, it);
	}
	return worst;
}

// Is there no load of it to go by? It counts as free then, but for what on_stale holds.
function isUnheard(worker) {
	return worker.stale || worker.age_ms === null;
}

// A worker with what the page asks of it more than once.
function digest(worker) {
	const worst = worstChecks(worker);
	const slots = worker.slots;
	const full = Boolean(slots && slots.cap !== null && slots.inuse >= slots.cap);
	const kind = worker.drain ? 'drain' : worker.suspect ? 'suspect' : worker.busy ? 'busy'
		: full ? 'full' : isUnheard(worker) ? 'stale' : 'free';
	const near = Math.max(...[...worst.values()].map((c) => c.near),
			      slots ? nearness(slots.inuse, slots.cap) : -1);

	return {worker, worst, full, kind, near,
		inert: [...worst.values()].some((c) => c.state === 'inert')};
}

// "decode blocks 9,850 against 8,500 on gpu-1", of the workers given
function fired(digests) {
	const by = new Map();

	for (const d of digests) {
		for (const c of d.worst.values()) {
			if (c.state !== 'over')
				continue;
			const g = by.get(c.limit) || {n: 0, top: c, name: d.worker.name};

			by.set(c.limit, isWorse(c, g.top) ? {n: g.n + 1, top: c, name: d.worker.name}
				: {...g, n: g.n + 1});
		}
	}
	return [...by].sort((a, b) => b[1].n - a[1].n).map(([limit, g]) =>
		`${short(limit)} ${number(g.top.measured)} against ${number(g.top.threshold)} on `
		+ g.name + (g.n > 1 ? ` and ${plural(g.n - 1, 'other')}` : '')).join('; ');
}

function why(pool, digests) {
	const n = digests.length, busy = digests.filter((d) => d.worker.busy);
	const slots = pool.slots;

	if (pool.forced)
		return `forced ${pool.forced} by hand, ${span(pool.forced_left_ms)} left`;
	if (pool.drain)
		return 'drained by hand: new requests get 503';
	if (pool.state === 'unavailable')
		return 'it has no worker';
	if (pool.state === 'saturated' && busy.length < n && slots && slots.free === 0)
		return `no free slot, ${number(slots.inuse)} of ${number(slots.cap)} in use`
			+ (busy.length ? `; ${busy.length} of ${n} busy: ${fired(busy)}` : '');
	if (busy.length)
		return (busy.length === n && n > 1 ? `all ${number(n)} busy: `
			: `${number(busy.length)} of ${number(n)} busy: `)
			+ (fired(busy) || 'held for the time that is configured');
	const top = digests.reduce((a, b) => (!a || b.near > a.near ? b : a), null);

	if (!top || top.near < 0)
		return n ? 'nothing is known of its load' : '';
	return `nearest to a limit is ${top.worker.name}, at ${Math.round(top.near * 100)} %`;
}

// "12 free, 3 busy", those there are
function census(digests) {
	const words = {free: 'free', busy: 'busy', full: 'full', suspect: 'suspect',
		       stale: 'without load', drain: 'draining'};
	const count = {};

	for (const d of digests)
		count[d.kind] = (count[d.kind] || 0) + 1;
	return Object.keys(words).filter((k) => count[k])
		.map((k) => ({key: k, text: `${number(count[k])} ${words[k]}`}));
}

// ---- views -------------------------------------------------------------------------------------

// Labels beside a name, as a list of {key, text}.
function labels() {
	const node = el('span', {class: 'labels'});

	return {node, update: keyed(node, (item) => {
		const one = el('span', {class: 'label', 'data-kind': item.key});

		return {node: one, update(i) {
			put(one, i.text);
			if (i.title)
				mark(one, 'title', i.title);
		}};
	}, (item) => item.key)};
}

function figure(name) {
	const value = el('b'), rest = el('span');

	return {node: el('div', {class: 'figure'}, el('small', {}, name), el('span', {}, value, rest)),
		update(v, more) {
			put(value, v);
			put(rest, more || '');
		}};
}

function poolLabels(p) {
	const list = [];

	if (p.forced)
		list.push({key: 'forced', text: 'forced'});
	if (p.drain)
		list.push({key: 'drain', text: 'drain'});
	if (p.observe)
		list.push({key: 'observe', text: 'observe', title: 'what would be shed is counted only'});
	if (p.steer)
		list.push({key: 'steer', text: `steers by ${p.steer}`});
	if (p.mode !== 'open')
		list.push({key: 'mode', text: `kernel: ${p.mode}`, title: 'what the kernel was told'});
	return list;
}

function poolView(pool) {
	const state = el('span', {class: 'state'}), since = el('span', {class: 'since'});
	const model = el('span', {class: 'model'}), reason = el('p', {class: 'why'});
	const flags = labels(), shed = figure('shed/s'), admitted = figure('admitted/s');
	const busy = figure('busy'), slots = figure('slots');
	const history = chart(), workers = workersView();
	const node = el('details', {class: 'pool'},
			el('summary', {},
			   el('div', {class: 'what'},
			      el('h2', {}, pool.name), state, since, model, flags.node, reason),
			   el('div', {class: 'numbers'}, shed.node, admitted.node, busy.node, slots.node)),
			history.node, workers.node);

	node.open = pool.unfolded;
	return {
		node,
		update(p) {
			const digests = p.workers.map(digest);
			const n = digests.filter((d) => d.worker.busy).length;

			mark(node, 'data-state', p.state);
			put(model, p.model && p.model !== p.name ? p.model : '');
			put(state, `${SIGNS[p.state] || ''} ${p.state}`);
			put(since, `for ${span(p.state_ms)}`);
			put(reason, why(p, digests));
			flags.update(poolLabels(p));
			shed.update(rate(p.rate.shed));
			mark(shed.node, 'data-some', p.rate.shed > 0);
			admitted.update(rate(p.rate.admitted));
			busy.update(number(n), ` / ${number(digests.length)}`);
			show(slots.node, p.slots);
			if (p.slots)
				slots.update(number(p.slots.inuse),
					     p.slots.cap === null ? '' : ` / ${number(p.slots.cap)}`);
			if (!node.open)
				return;
			if (p.history)
				history.update(p.history);
			workers.update(p, digests);
		},
	};
}
