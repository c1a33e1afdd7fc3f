// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the page is drawn with: elements, numbers in words, bars, and the chart of ten minutes. Text
// from outside ends up in text nodes and attributes only.

const SVG = 'http://www.w3.org/2000/svg';
const STATES = ['open', 'saturated', 'draining', 'unavailable']; // as the history numbers them

function byId(id) {
	return document.getElementById(id);
}

function fill(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes || {}))
		node.setAttribute(name, value);
	node.append(...children);
	return node;
}

function el(tag, attributes, ...children) {
	return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
	return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Changes only what is another now: a selection, a screen reader and the browser's work stay.
function put(node, text) {
	if (node.textContent !== String(text))
		node.textContent = text;
}

function mark(node, name, value) {
	if (node.getAttribute(name) !== String(value))
		node.setAttribute(name, value);
}

function show(node, is) {
	if (node.hidden === Boolean(is))
		node.hidden = !is;
}

// Children of `parent` for a list that changes: make(item) gives {node, update(item)}, which stays
// for as long as an item has its key. They come after the child `after`, if one is given.
function keyed(parent, make, key, after) {
	const views = new Map();

	return (items) => {
		const seen = new Set();
		let at = after ? after.nextSibling : parent.firstChild;

		for (const item of items) {
			const k = key(item);

			if (seen.has(k))
				continue;
			seen.add(k);
			if (!views.has(k))
				views.set(k, make(item));
			const view = views.get(k);

			view.update(item);
			if (view.node === at)
				at = at.nextSibling;
			else
				parent.insertBefore(view.node, at);
		}
		for (const [k, view] of views) {
			if (seen.has(k))
				continue;
			view.node.remove();
			views.delete(k);
		}
	};
}

// ---- numbers ---------------------------------------------------------------------------------

const grouped = new Intl.NumberFormat('en', {maximumFractionDigits: 2});

function number(n) {
	if (n === null || n === undefined)
		return '–';
	if (Math.abs(n) < 1e5)
		return grouped.format(n);
	if (Math.abs(n) < 1e6)
		return `${(n / 1e3).toFixed(1)}k`;
	return Math.abs(n) < 1e9 ? `${(n / 1e6).toFixed(2)}M` : `${(n / 1e9).toFixed(2)}G`;
}

function rate(n) {
	return n === null ? '–' : n >= 1e4 ? `${(n / 1e3).toFixed(1)}k`
		: grouped.format(n >= 10 || n === 0 ? Math.round(n) : Number(n.toFixed(1)));
}

function plural(n, one, many) {
	return `${number(n)} ${n === 1 ? one : many || `${one}s`}`;
}

// A time in its two largest units.
function span(ms) {
	const s = Math.floor(ms / 1000);

	if (s < 60)
		return `${s} s`;
	if (s < 3600)
		return `${Math.floor(s / 60)} min ${s % 60} s`;
	if (s < 86400)
		return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
	return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

function age(ms) {
	return ms === null || ms === undefined ? 'never'
		: ms < 10000 ? `${(ms / 1000).toFixed(1)} s` : span(ms);
}

function clock(ms) {
	return new Date(ms).toLocaleTimeString('en-GB');
}

// How near a value is to its limit; 1 and more: it has reached it. -1: not known.
function nearness(value, limit) {
	if (value === null || limit === null || value === undefined || limit === undefined)
		return -1;
	return limit > 0 ? value / limit : value > 0 ? 2 : 0;
}

// ---- bars ------------------------------------------------------------------------------------

// A value against its limit, in figures and as a bar. With `room` the limit stands at three quarters
// of the bar, as what is measured may be beyond it.
function gauge(room) {
	const value = el('b'), limit = el('span'), bar = el('i');
	const track = el('div', {class: room ? 'track room' : 'track', 'aria-hidden': 'true'}, bar);
	const note = el('small');
	const node = el('div', {class: 'gauge'}, el('div', {class: 'figures'}, value, limit, note), track);

	return {
		node,
		update(measured, max, state, text) {
			const near = Math.max(0, nearness(measured, max));

			put(value, number(measured));
			put(limit, max === null ? '' : ` / ${number(max)}`);
			put(note, text || '');
			mark(node, 'data-state', state);
			bar.style.width = `${Math.min(100, near * (room ? 75 : 100))}%`;
		},
	};
}

// ---- the chart -------------------------------------------------------------------------------

const SECONDS = 600, HEIGHT = 100;

// A round number at or above n, so that the scale does not breathe with every second.
function ceiling(n) {
	const unit = 10 ** Math.floor(Math.log10(Math.max(n, 10)));

	return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((m) => m * unit).find((top) => top >= n);
}

// The outline of what lies between two lines.
function area(low, high, top, first) {
	const y = (v) => (HEIGHT - v / top * HEIGHT).toFixed(1);
	const up = high.map((v, i) => `${first + i},${y(v)}`);
	const down = low.map((v, i) => `${first + i},${y(v)}`).reverse();

	return up.length > 1 ? `M${up.join('L')}L${down.join('L')}Z` : '';
}

// Admitted and shed of the last ten minutes above each other, and the state below.
function chart() {
	const admitted = svg('path', {class: 'admitted'}), shed = svg('path', {class: 'shed'});
	const hair = svg('line', {class: 'hair', y1: 0, y2: HEIGHT, x1: -1, x2: -1});
	const plot = svg('svg', {viewBox: `0 0 ${SECONDS} ${HEIGHT}`, preserveAspectRatio: 'none',
				 role: 'img', class: 'plot'},
			 svg('path', {class: 'grid', d: [0.5, 50, 99.5].map(
				 (y) => `M0 ${y}H${SECONDS}`).join('')}),
			 admitted, shed, hair);
	const strip = svg('svg', {viewBox: `0 0 ${SECONDS} 1`, preserveAspectRatio: 'none',
				  class: 'strip', 'aria-hidden': 'true'});
	const top = el('span', {class: 'top'}), half = el('span', {class: 'half'});
	const says = el('span');
	const legend = el('figcaption', {}, ...['shed', 'admitted'].map(
		(name) => el('span', {class: name}, name)), says);
	const node = el('figure', {class: 'chart'},
			el('div', {class: 'canvas'}, plot, top, half), strip,
			el('div', {class: 'times', 'aria-hidden': 'true'},
			   ...['10 min ago', '5 min', 'now'].map((t) => el('span', {}, t))), legend);
	const runs = keyed(strip, () => {
		const rect = svg('rect', {y: 0, height: 1});

		return {node: rect, update(run) {
			mark(rect, 'class', STATES[run.state]);
			mark(rect, 'x', run.from);
			mark(rect, 'width', run.length);
		}};
	}, (run) => run.key);
	let past = null, pointed = -1;

	function caption() {
		const i = past ? pointed - (SECONDS - past.shed.length) : -1;

		hair.setAttribute('x1', i >= 0 ? pointed + 0.5 : -1);
		hair.setAttribute('x2', i >= 0 ? pointed + 0.5 : -1);
		if (i >= 0)
			put(says, `${span((SECONDS - 1 - pointed) * 1000)} ago: ${rate(past.shed[i])} shed, `
				+ `${rate(past.admitted[i])} admitted, ${STATES[past.state[i]]}, `
				+ `${past.busy[i]} of ${past.workers[i]} busy`);
		else if (past)
			put(says, `${number(past.total.shed)} shed and ${number(past.total.admitted)} `
				+ 'admitted in this time');
	}

	plot.addEventListener('pointermove', (e) => {
		const box = plot.getBoundingClientRect();

		pointed = Math.floor((e.clientX - box.left) / box.width * SECONDS);
		caption();
	});
	plot.addEventListener('pointerleave', () => {
		pointed = -1;
		caption();
	});
	return {
		node,
		update(h) {
			const first = SECONDS - h.shed.length;
			const sum = h.admitted.map((v, i) => v + h.shed[i]);
			const max = ceiling(Math.max(0, ...sum));
			const list = [];

			past = {...h, total: {shed: h.shed.reduce((a, b) => a + b, 0),
					      admitted: h.admitted.reduce((a, b) => a + b, 0)}};
			admitted.setAttribute('d', area(sum.map(() => 0), h.admitted, max, first));
			shed.setAttribute('d', area(h.admitted, sum, max, first));
			put(top, `${rate(max)}/s`);
			put(half, rate(max / 2));
			h.state.forEach((state, i) => {
				const last = list[list.length - 1];

				if (last && last.state === state)
					last.length++;
				else
					list.push({key: list.length, state, from: first + i, length: 1});
			});
			runs(list);
			caption();
			mark(plot, 'aria-label', `Requests a second. ${says.textContent}`);
		},
	};
}
