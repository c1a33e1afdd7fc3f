// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The workers of a pool: a map of all where they are many, and a table of those that matter most, each
// limit with what is measured against it. A worker unfolds to its ranks and sources.

const SHOWN = 20;	// rows before somebody asks for more
const FEW = 12;		// workers that need neither map nor filter
const CELL = 11;	// pixels of a worker in the map
const ORDER = {busy: 0, full: 1, suspect: 2, stale: 3, drain: 4, free: 5};

function workerLabels(d) {
	const w = d.worker, list = [];
	const since = (ms) => (ms === null || ms === undefined ? '' : ` ${span(ms)}`);

	if (w.busy)
		list.push({key: 'busy', text: `busy${since(w.busy_ms)}`});
	if (d.full)
		list.push({key: 'full', text: 'full', title: 'no slot is free'});
	if (w.suspect)
		list.push({key: 'suspect', text: `suspect${since(w.suspect_ms)}`,
			   title: 'a connection to it could not be made'});
	if (w.drain)
		list.push({key: 'drain', text: `drain${since(w.drain_ms)}`});
	if (isUnheard(w))
		list.push({key: 'stale', text: w.stale ? 'stale' : 'no load',
			   title: w.error || 'its load is too old'});
	if (d.inert)
		list.push({key: 'inert', text: 'inert',
			   title: 'a limit cannot fire: the engine does not tell what it needs'});
	return w.busy || d.full || w.suspect || w.drain ? list : [{key: 'free', text: 'free'}, ...list];
}

// ---- one worker --------------------------------------------------------------------------------

// A small table; `list` has the texts of each row, by column.
function listing(head, list) {
	const lines = list.map((texts) => {
		const line = textRow(head, []);

		line.put(texts);
		return line.node;
	});

	return el('table', {}, el('thead', {}, el('tr', {}, ...head.map(
		(t) => el('th', {scope: 'col'}, t)))), el('tbody', {}, ...lines));
}

// What a worker unfolds to. Made anew each time, as there is nothing in it to hold on to.
function detail(w) {
	const facts = [['url', w.url], ['engine', w.engine], ['takes requests at', w.at], ['worker_id', w.worker_id],
		       ['from', w.discovered ? 'discovery' : 'the configuration']];
	const checks = [...w.checks.map((c) => ['whole worker', c]),
			...w.ranks.flatMap((r) => r.checks.map((c) => [`rank ${r.rank}`, c]))];

	return [
		el('p', {class: 'note'}, facts.filter((f) => f[1] !== null && f[1] !== undefined
				&& f[1] !== '').map((f) => `${f[0]} ${f[1]}`).join(' · ')),
		listing(['of', 'limit', 'signal', 'measured', 'against', 'age', 'state'],
			checks.map(([of, c]) => [of, c.limit, c.signal, number(c.measured),
						 number(c.threshold), age(c.age_ms), c.state])),
		listing(['source', 'age', 'told', 'failures', 'last error'],
			w.sources.map((s) => [
				s.publisher ? `${s.kind} ${s.publisher}` : s.kind, age(s.age_ms),
				number(s.told), number(s.failures), s.error || 'none'])),
	];
}

function workerView(item, limits, slotted) {
	const name = el('span'), flags = labels();
	const button = el('button', {type: 'button', class: 'fold', 'aria-expanded': 'false'}, name);
	const gauges = limits.map((l) => ({limit: l, gauge: gauge(true)}));
	const slots = gauge(false), heard = el('td', {class: 'n', 'data-label': 'load age'});
	const cells = gauges.map(({limit, gauge: g}) =>
		el('td', {'data-label': short(limit)}, g.node));
	const slotCell = el('td', {'data-label': 'slots'}, slots.node);
	const line = el('tr', {}, el('th', {scope: 'row'}, button), el('td', {class: 'flags'}, flags.node),
			...cells, ...(slotted ? [slotCell] : []), heard);
	const inside = el('td', {colspan: limits.length + (slotted ? 4 : 3)});
	const more = el('tr', {class: 'detail', hidden: ''}, inside);
	const node = el('tbody', {}, line, more);
	let last = item;

	function unfold(is) {
		mark(button, 'aria-expanded', is);
		show(more, is);
		inside.replaceChildren(...(is ? detail(last.worker) : []));
	}
	button.addEventListener('click', () => unfold(more.hidden));
	return {
		node,
		update(d) {
			const w = d.worker;

			last = d;
			put(name, w.name);
			mark(node, 'data-kind', d.kind);
			flags.update(workerLabels(d));
			for (const {limit, gauge: g} of gauges) {
				const c = d.worst.get(limit);

				g.update(c ? c.measured : null, c ? c.threshold : null,
					 c ? c.near >= 0.9 && c.state === 'clear' ? 'near'
					 : c.state : 'clear',
					 !c || c.state === 'clear' ? '' : c.state !== 'over' ? c.state
					 : w.ranks.length > 1 && c.rank !== undefined ? `r${c.rank}` : '');
			}
			slots.update(w.slots ? w.slots.inuse : null, w.slots ? w.slots.cap : null,
				     d.full ? 'over' : 'clear');
			put(heard, age(w.age_ms));
			mark(heard, 'data-stale', isUnheard(w));
			if (!more.hidden && !inside.contains(document.activeElement)
			    && getSelection().isCollapsed)
				unfold(true);
		},
	};
}

// ---- all of them -------------------------------------------------------------------------------

// A cell for each worker: its colour is its state, of a free one the fuller the darker.
function workersMap(chosen) {
	const canvas = el('canvas', {role: 'img', class: 'map'});
	let list = [], across = 1;

	function at(e) {
		const box = canvas.getBoundingClientRect();

		return list[Math.floor((e.clientY - box.top) / CELL) * across
			    + Math.floor((e.clientX - box.left) / CELL)];
	}
	canvas.addEventListener('pointermove', (e) => {
		const d = at(e);

		canvas.title = d ? `${d.worker.name}: ${workerLabels(d).map((l) => l.text).join(', ')}` : '';
	});
	canvas.addEventListener('click', (e) => {
		if (at(e))
			chosen(at(e).worker.name);
	});
	return {
		node: canvas,
		update(digests, text) {
			const ink = getComputedStyle(canvas), scale = devicePixelRatio || 1;
			const width = canvas.parentNode.clientWidth;
			const colour = {};

			list = digests;
			across = Math.max(1, Math.floor(width / CELL));
			canvas.width = across * CELL * scale;
			canvas.height = Math.ceil(list.length / across) * CELL * scale;
			canvas.style.width = `${across * CELL}px`;
			mark(canvas, 'aria-label', text);
			const c = canvas.getContext('2d');

			c.scale(scale, scale);
			for (const kind of Object.keys(ORDER))
				colour[kind] = ink.getPropertyValue(`--${kind}`);
			list.forEach((d, i) => {
				c.globalAlpha = d.kind === 'free'
					? 0.25 + 0.65 * Math.min(1, Math.max(0, d.near)) : 1;
				c.fillStyle = colour[d.kind];
				c.fillRect(i % across * CELL, Math.floor(i / across) * CELL, CELL - 2, CELL - 2);
			});
		},
	};
}

function tableHead(pool, limits, slotted) {
	const told = new Map(pool.thresholds.map((t) => [t.name, t]));

	return el('tr', {}, el('th', {scope: 'col'}, 'Worker'), el('th', {scope: 'col'}, 'State'),
		  ...limits.map((l) => {
			  const t = told.get(l);

			  return el('th', {scope: 'col', title: l}, short(l), el('small', {}, t
				  ? `${number(t.value)}${t.from === 'api' ? ' by API' : ''}` : ''));
		  }),
		  ...(slotted ? [el('th', {scope: 'col'}, 'Slots')] : []),
		  el('th', {scope: 'col', class: 'n'}, 'Load age'));
}

function workersView() {
	const summary = el('p', {class: 'census'}), counts = labels();
	const filter = el('input', {type: 'search', placeholder: 'Filter by name', 'aria-label':
				    'Show workers whose name contains'});
	const sort = el('select', {'aria-label': 'Order'}, ...[['trouble', 'trouble first'],
			['load', 'fullest first'], ['conf', 'as configured']].map(
				([value, text]) => el('option', {value}, text)));
	const tools = el('span', {class: 'tools'}, filter, sort);
	const map = workersMap((name) => {
		filter.value = name;
		redraw();
	});
	const mapBox = el('div', {class: 'all'}, map.node);
	const head = el('thead'), table = el('table', {class: 'workers'}, head);
	const more = el('button', {type: 'button', class: 'more'});
	const node = el('div', {class: 'inner'}, summary, mapBox,
			el('div', {class: 'wide'}, table), more);
	let shape = '', slotted = false, update = null, last = null, most = SHOWN;

	summary.append(counts.node, tools);

	// The table of a pool whose limits are others now is another table.
	function reshape(pool, digests) {
		const limits = [...new Set([...pool.thresholds.map((t) => t.name),
					    ...digests.flatMap((d) => [...d.worst.keys()])])];
		const now = JSON.stringify([limits, digests.some((d) => d.worker.slots),
					    pool.thresholds]);

		if (now === shape)
			return;
		shape = now;
		slotted = digests.some((d) => d.worker.slots);
		head.replaceChildren(tableHead(pool, limits, slotted));
		table.replaceChildren(head);
		update = keyed(table, (d) => workerView(d, limits, slotted), (d) => d.worker.name,
			       head);
	}

	function chosen(digests) {
		const text = filter.value.toLowerCase();
		const list = digests.filter((d) => d.worker.name.toLowerCase().includes(text));

		if (digests.length <= FEW || sort.value === 'conf')
			return list;
		return sort.value === 'load' ? list.sort((a, b) => b.near - a.near)
			: list.sort((a, b) => ORDER[a.kind] - ORDER[b.kind] || b.near - a.near);
	}

	function redraw() {
		const [pool, digests] = last, many = digests.length > FEW;
		const list = chosen(digests);

		reshape(pool, digests);
		counts.update(census(digests));
		show(summary, many);
		show(mapBox, many);
		if (many)
			map.update(digests, census(digests).map((c) => c.text).join(', '));
		update(list.slice(0, most));
		show(more, list.length > most);
		put(more, `Show ${number(Math.min(100, list.length - most))} more of `
			+ number(list.length));
	}

	filter.addEventListener('input', redraw);
	sort.addEventListener('change', redraw);
	more.addEventListener('click', () => {
		most += 100;
		redraw();
	});
	return {node, update(pool, digests) {
		last = [pool, digests];
		redraw();
	}};
}
