// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What is beside the pools: listeners, sources, what needs attention, and the events as they come.

const EVENTS = 200;	  // lines that are kept
const FOLD_MS = 60000;	  // like sheddings within this time are one line
const FAILING = 50;	  // feeds of workers that are named
const SLIM_MS = 500;	  // a heartbeat with less time left than this was nearly too late

// A row of cells whose texts change; `numeric` says which are numbers.
function textRow(labelsOf, numeric) {
	const cells = labelsOf.map((label, i) => el(i ? 'td' : 'th', {
		...(i ? {'data-label': label} : {scope: 'row'}),
		...(numeric.includes(i) ? {class: 'n'} : {})}));

	return {node: el('tr', {}, ...cells), put(texts) {
		texts.forEach((t, i) => put(cells[i], t));
	}};
}

// ---- listeners ---------------------------------------------------------------------------------

// Requests shed by reason, over all programs.
function shedReasons(counts) {
	const sum = {};

	for (const program of Object.values(counts))
		for (const [name, n] of Object.entries(program))
			if (name.startsWith('shed_') && name !== 'shed_again' && name !== 'shed_no_answer')
				sum[name.slice(5)] = (sum[name.slice(5)] || 0) + n;
	return Object.entries(sum).map(([name, n]) => `${name.replace(/_/g, '-')} ${number(n)}`);
}

function listenerState(l) {
	return !l.guarded ? 'not guarded' : !l.served ? 'nobody listens there'
		: {new: 'new connections', established: 'kept connections',
		   both: 'new and kept connections'}[l.ways] || 'nothing: what must pass would be lost';
}

function listenerView() {
	const line = textRow(['address', 'pool', 'sheds on', 'shed/s', 'shed', 'by reason',
			      'handed over'], [3, 4, 6]);

	return {node: line.node, update(l) {
		mark(line.node, 'data-bad', !l.guarded || !l.served || l.ways === 'none');
		line.put([l.netns ? `${l.address} in ${l.netns}` : l.address, l.pool, listenerState(l),
			  rate(l.rate), number(l.shed),
			  [...shedReasons(l.counts), ...(l.would_shed
				  ? [`would have shed ${number(l.would_shed)}`] : [])].join(' · ') || 'none',
			  number(l.handed_over)]);
	}};
}

function planeText(p) {
	const on = p.interfaces.map((i) => i.name + (i.xdp === 'none' ? ` (${i.tc})`
		: ` (XDP ${i.xdp}, ${i.tc})`)).join(', ');

	return `${p.netns ? `In ${p.netns}` : 'Guarded'} on ${on || 'no interface'}`;
}

// ---- sources -----------------------------------------------------------------------------------

// What is wrong, or was in the last hour.
function lastError(s) {
	const over = !s.error || s.state === 'ok';

	return over && s.last_error ? `${age(s.last_error_ms)} ago: ${s.last_error}` : s.error;
}

// The daemon's own sources, and those feeds of workers that fail.
function sourceRows(status) {
	const rows = status.sources.map((s) => ({
		key: `${s.kind} ${s.name}`, name: `${s.kind} ${s.name}`, state: s.state, age: s.age_ms,
		messages: s.messages, errors: s.errors, error: lastError(s)}));

	for (const p of status.pools) {
		for (const w of p.workers) {
			for (const s of w.sources) {
				const name = `${s.kind} of ${p.name}/${w.name}`
					+ (s.publisher ? ` by ${s.publisher}` : '');

				if (s.error && rows.length < FAILING)
					rows.push({key: name, name, state: 'failing', age: s.age_ms,
						   messages: s.told, errors: s.failures, error: s.error});
			}
		}
	}
	return rows;
}

function sourceView() {
	const line = textRow(['source', 'state', 'age', 'messages', 'errors', 'last error'], [2, 3, 4]);

	return {node: line.node, update(s) {
		mark(line.node, 'data-bad', s.state !== 'ok');
		line.put([s.name, s.state, age(s.age), number(s.messages), number(s.errors),
			  s.error || 'none']);
	}};
}

function feedsText(status) {
	const workers = status.pools.flatMap((p) => p.workers);
	const feeds = workers.flatMap((w) => w.sources);
	const bad = feeds.filter((s) => s.error).length;

	return `${plural(feeds.length, 'feed')} of ${plural(workers.length, 'worker')}, `
		+ (bad ? `${number(bad)} failing` : 'none failing');
}

// ---- attention ---------------------------------------------------------------------------------

// What somebody should look at, in words.
function attention(status) {
	const list = [];
	const some = (workers, text) => workers.length && list.push(workers.length > 1
		? `${workers[0]} and ${plural(workers.length - 1, 'other worker')}: ${text}`
		: `${workers[0]}: ${text}`);
	const named = (test) => status.pools.flatMap((p) => p.workers.filter(test)
		.map((w) => `${p.name}/${w.name}`));
	const beat = status.heartbeat;

	for (const p of status.planes)
		if (p.error)
			list.push(`${p.netns ? `namespace ${p.netns}` : 'this host'}: ${p.error}`);
	if (beat && beat.margin_ms < Math.min(SLIM_MS, beat.deadline_ms / 4))
		list.push(`a heartbeat came only ${beat.margin_ms} ms before the deadline of `
			+ `${beat.deadline_ms} ms, past which nothing is shed`);
	some(named(isUnheard), 'no load to go by, or it is too old');
	some(named((w) => w.suspect), 'suspect, a connection to it could not be made');
	some(named((w) => [...w.ranks.flatMap((r) => r.checks), ...w.checks].some(
		(c) => c.state === 'inert')), 'a limit is inert, the engine does not tell what it needs');
	for (const s of status.sources)
		if (s.state === 'failing')
			list.push(`source ${s.name}: ${s.error}`);
	return list;
}

// ---- events ------------------------------------------------------------------------------------

function eventText(type, e) {
	switch (type) {
	case 'pool':
		return `${e.pool}: ${e.from} → ${e.to}` + (e.for_ms ? ` after ${span(e.for_ms)}` : '')
			+ (e.cause ? ` · ${e.cause}` : '');
	case 'worker':
		return `${e.pool}/${e.worker}: ${e.change}`
			+ (e.limit ? ` · ${short(e.limit)} ${number(e.measured)} against `
				+ number(e.threshold) : '');
	case 'missed':
		return `${plural(e.count, 'event')} missed, this page was too slow`;
	default:
		return JSON.stringify(e);
	}
}

// One line for sheddings of a kind: how many of them were told, of what and from how many networks.
function shedLine(e) {
	const what = el('span'), rest = el('span', {class: 'rest'});
	const asked = new Set(), from = new Set();
	let n = 0, kept = 0;

	return {nodes: [what, rest], add(more) {
		asked.add(`${more.method} ${more.endpoint}`);
		from.add(more.source);
		n++;
		kept += more.kept ? 1 : 0;
		put(what, `${e.status} ${e.reason}${n > 1 ? ` × ${number(n)}` : ''}`);
		put(rest, ` ${[...asked].join(', ')} to ${e.listener} from `
			+ (from.size > 1 ? plural(from.size, 'network') : more.source)
			+ (kept ? n > 1 ? `, ${number(kept)} on kept connections` : ', kept connection' : ''));
	}};
}

function droppedLine() {
	const what = el('span');
	let n = 0;

	return {nodes: [what], add(more) {
		n += more.count;
		put(what, `${plural(n, 'more', 'more')} shed, beyond the rate at which events are told`);
	}};
}

// Newest first. What comes often, sheddings and those left out, is one line a kind until something
// else happens or the line is a minute old.
function eventList(parent) {
	let open = new Map();

	function line(type, e, now, nodes) {
		parent.prepend(el('li', {'data-type': type, 'data-to': e.to || e.change || ''},
				  el('time', {}, clock(now)), el('div', {}, ...nodes)));
		while (parent.childElementCount > EVENTS)
			parent.lastChild.remove();
	}

	return (type, e) => {
		const now = e.time_ms || Date.now();

		if (type !== 'shed' && type !== 'dropped') {
			open = new Map();
			return line(type, e, now, [eventText(type, e)]);
		}
		const kind = `${type} ${e.listener} ${e.reason} ${e.status}`;
		let folded = open.get(kind);

		if (!folded || now - folded.since > FOLD_MS) {
			folded = {since: now, ...(type === 'shed' ? shedLine(e) : droppedLine())};
			open.set(kind, folded);
			line(type, e, now, folded.nodes);
		}
		folded.add(e);
	};
}
