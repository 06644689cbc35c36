// timeline.js - the time line: whatever part of it is shown is asked of the server anew, down to a nanosecond.
(function (explorer, report) {
	'use strict';
	const {element} = report, AXIS = 24, LANE = 34, LABELS = 130, MARKS = 7, LEAST_NS = 20, CALL = 14, MOST_THREADS = 8, MOST_DEPTH = 40;
	const at = (id) => document.getElementById(id);
	const canvas = document.querySelector('canvas.timeline');
	const shown = {spans: [], marks: [], calls: []};
	let leastCall = 0; // ns: of calls of that time longer ones are all there
	let all = {begin: 0, end: 1}, view = {begin: 0, end: 1}, asked = null, lanes = [], spans = [], stacks = [], timer = 0, hover = null;

	const width = () => Math.max(50, canvas.clientWidth - LABELS);
	const x = (t) => LABELS + (t - view.begin) / (view.end - view.begin) * width();
	const time = (px) => view.begin + (px - LABELS) / width() * (view.end - view.begin);
	const laneAt = (y) => lanes[Math.floor((y - AXIS) / LANE)];
	const since = (t) => report.time(t - all.begin);
	const lanesEnd = () => AXIS + Math.max(1, lanes.length) * LANE;

	// The calls of a thread as they nest: a row for each depth. What is shorter than a pixel is not among them, so what is drawn above
	// another one is its caller, or that one's.
	function nested(calls) {
		const by = new Map();
		for (const c of calls) {
			const key = c.thread === null ? 'none' : c.thread;
			if (!by.has(key)) by.set(key, {label: c.label, calls: [], open: [], depth: 0, total: 0});
			const t = by.get(key);
			while (t.open.length && t.open[t.open.length - 1].end < c.end) t.open.pop();
			c.depth = t.open.length;
			if (!c.depth) t.total += c.end - c.begin;
			t.open.push(c);
			t.depth = Math.max(t.depth, Math.min(MOST_DEPTH, t.open.length));
			t.calls.push(c);
		}
		return [...by.values()].sort((a, b) => b.calls.length - a.calls.length || b.total - a.total);
	}
	function callsNote(list) {
		const least = `longer than ${report.time(leastCall)}`, more = list.length - stacks.length;
		if (!list.length) return `No calls ${least} are known here.`;
		const deep = stacks.reduce((n, s) => n + s.calls.filter((c) => c.depth >= MOST_DEPTH).length, 0);
		return `All calls ${least} whose times are known${more > 0 ? `; ${report.count(more)} more threads have some` : ''}${
			deep ? `; ${report.count(deep)} are nested too deep to be drawn` : ''}. Shorter ones: zoom in.`;
	}
	function placeStacks() {
		const list = at('calls-of').value === 'none' ? [] : nested(shown.calls);
		let top = lanesEnd();
		stacks = list.slice(0, MOST_THREADS);
		for (const s of stacks) {
			s.top = top;
			top += LANE / 2 + s.depth * CALL + 4;
		}
		at('calls-note').textContent = at('calls-of').value === 'none' ? '' : callsNote(list);
		return top;
	}
	function paintStack(c, stack) {
		c.fillStyle = report.color('text');
		c.fillText(stack.label, 4, stack.top + LANE / 4, LABELS * 2);
		for (const call of stack.calls) {
			const from = Math.max(LABELS, x(call.begin)), to = Math.max(from + .7, x(call.end));
			if (call.depth >= MOST_DEPTH || to < LABELS || from > canvas.clientWidth) continue;
			const y = stack.top + LANE / 2 + call.depth * CALL;
			c.fillStyle = report.color('call');
			c.fillRect(from, y, Math.max(.7, to - from - .5), CALL - 1);
			if (to - from <= 30) continue;
			c.save();
			c.beginPath();
			c.rect(from, y, to - from - 1, CALL - 1);
			c.clip();
			c.fillStyle = '#000';
			c.fillText(call.what, from + 3, y + CALL / 2);
			c.restore();
		}
	}
	// The call at a place, as a span.
	function callAt(px, py) {
		const stack = stacks.findLast((s) => py >= s.top);
		if (!stack) return null;
		const depth = Math.floor((py - stack.top - LANE / 2) / CALL), t = time(px), slack = (view.end - view.begin) / width();
		return stack.calls.find((c) => c.depth === depth && c.begin - slack <= t && t <= c.end + slack) || null;
	}

	function axis(c) {
		const span = view.end - view.begin;
		let step = 10 ** Math.floor(Math.log10(span / Math.max(2, width() / 110)));
		while (span / step > width() / 90) step *= String(step)[0] === '2' ? 2.5 : 2;
		for (let t = Math.ceil((view.begin - all.begin) / step) * step; t <= view.end - all.begin; t += step) {
			const px = Math.round(x(all.begin + t)) + .5;
			c.strokeStyle = report.color('line');
			c.beginPath();
			c.moveTo(px, 0);
			c.lineTo(px, canvas.clientHeight);
			c.stroke();
			c.fillStyle = report.color('dim');
			c.fillText(step < 100 ? `${report.count(Math.round(t))} ns` : report.time(t), px + 4, AXIS / 2);
		}
	}

	const colorOf = (span) => ({call: 'call', guest: 'guest', exit: 'kernel', thread: 'thread', lost: 'mark', interrupt: 'mark', event: 'text'})[span.kind];
	const isMark = (span) => span.kind === 'interrupt' || span.kind === 'event';
	// A row for many short spans is as high as the share of the time that they take.
	function paintSpan(c, span, top, clip) {
		const from = Math.max(LABELS, x(span.begin)), to = Math.max(from + 1, x(span.end)), whole = LANE - 8;
		const share = span.count > 1 ? Math.min(1, span.total_ns / Math.max(1, span.end - span.begin)) : 1;
		const height = Math.max(2, whole * share);
		c.fillStyle = report.color(colorOf(span));
		if (isMark(span)) {
			c.fillRect(from, top + LANE - MARKS, Math.max(1.5, to - from), MARKS - 1);
			return;
		}
		c.fillRect(from, top + 4 + whole - height, to - from, height);
		// Of exits: the VM process above, off the CPU below.
		const length = Math.max(1, span.count > 1 ? span.total_ns : span.end - span.begin);
		const off = height * Math.min(1, (span.off_cpu_ns || 0) / length), user = height * Math.min(1, (span.userspace_ns || 0) / length);
		c.fillStyle = report.color('off');
		c.fillRect(from, top + 4 + whole - off, to - from, off);
		c.fillStyle = report.color('user');
		c.fillRect(from, top + 4 + whole - height, to - from, Math.min(user, height - off));
		if (to - from > 40 && span.count === 1) {
			c.save();
			c.beginPath();
			c.rect(from, top, Math.min(to, clip) - from - 3, LANE);
			c.clip();
			c.fillStyle = off > height / 2 ? report.color('text') : report.color('on-accent');
			c.fillText(span.what, from + 4, top + LANE / 2);
			c.restore();
		}
	}

	function paint() {
		const ratio = window.devicePixelRatio || 1, height = placeStacks();
		canvas.style.height = `${height}px`;
		canvas.width = canvas.clientWidth * ratio;
		canvas.height = height * ratio;
		const c = canvas.getContext('2d');
		c.scale(ratio, ratio);
		c.font = '12px system-ui, sans-serif';
		c.textBaseline = 'middle';
		c.fillStyle = report.color('page');
		c.fillRect(0, 0, canvas.clientWidth, height);
		axis(c);
		for (const span of spans) {
			const n = lanes.findIndex((l) => l.lane === span.lane);
			if (n >= 0 && span.end >= view.begin && span.begin <= view.end) paintSpan(c, span, AXIS + n * LANE, canvas.clientWidth);
		}
		for (const stack of stacks) paintStack(c, stack);
		lanes.forEach((lane, n) => {
			c.fillStyle = report.color('page');
			c.fillRect(0, AXIS + n * LANE, LABELS, LANE);
			c.fillStyle = report.color('text');
			c.fillText(lane.label, 4, AXIS + n * LANE + LANE / 2, LABELS - 8);
		});
	}

	const range = () => `${since(view.begin)} to ${since(view.end)}, ${report.time(view.end - view.begin)} of ${report.time(all.end - all.begin)}`;
	function described(span) {
		if (span.kind === 'call') return `${span.what}, ${report.time(span.end - span.begin)}, ${report.count(span.insn_count)} instructions`;
		const off = span.off_cpu_ns ? `, off the CPU for ${report.time(span.off_cpu_ns)}` : '', user = span.userspace_ns ? `, in the VM process for ${report.time(span.userspace_ns)}` : '';
		if (span.count === 1) return isMark(span) ? span.what : `${span.kind === 'exit' ? `exit ${span.id}, ` : ''}${span.what}, ${report.time(span.end - span.begin)}${off}${user}`;
		const more = `${span.what} and ${report.count(span.count - 1)} more`;
		return isMark(span) ? more : `${more}, the longest ${report.time(span.longest_ns)}, together ${report.time(span.total_ns)}${off}${user}`;
	}
	function say() {
		const words = hover ? `${described(hover)}, at ${since(hover.begin)}` : range();
		at('readout').textContent = words;
		canvas.dataset.begin = view.begin;
		canvas.dataset.end = view.end;
		canvas.dataset.spans = spans.length;
		canvas.dataset.calls = shown.calls.length;
	}

	// Spans and marks, each shown when it comes.
	async function fetchPart(what, part) {
		const t = await explorer.ask(what, `api/${what}`, {db: explorer.state().db, 'p.trace': explorer.state().trace, limit: 100000,
			'p.thread': what === 'calls' ? explorer.state().thread : '', 'p.after': Math.floor(part.begin), 'p.until': Math.ceil(part.end), 'p.pixels': Math.round(width())});
		if (!t) return false;
		shown[what] = explorer.objects(t);
		if (what === 'calls') {
			const least = shown.calls.pop();
			leastCall = least ? least.least_ns : 0;
			for (const c of shown.calls) c.kind = 'call', c.count = 1;
		}
		spans = [...shown.spans, ...shown.marks];
		hover = null;
		asked = part;
		paint();
		say();
		return true;
	}
	async function fetchSpans() {
		const part = {...view};
		try {
			const came = await Promise.all(['spans', 'marks', ...(at('calls-of').value === 'none' ? [] : ['calls'])].map((what) => fetchPart(what, part)));
			if (came.every((c) => c)) canvas.dataset.asked = `${part.begin} ${part.end}`;
		} catch (e) {
			at('readout').textContent = e.message;
		}
	}

	function move(begin, end, quiet) {
		const least = Math.min(LEAST_NS, all.end - all.begin), length = Math.min(Math.max(end - begin, least), all.end - all.begin);
		begin = Math.min(Math.max(begin, all.begin), all.end - length);
		view = {begin, end: begin + length};
		hover = null;
		paint();
		say();
		clearTimeout(timer);
		timer = setTimeout(() => {
			fetchSpans();
			if (!quiet) explorer.remember({after: Math.floor(view.begin), until: Math.ceil(view.end)});
		}, 120);
	}
	const zoom = (by, around) => move(around - (around - view.begin) * by, around + (view.end - around) * by);
	const shift = (share) => move(view.begin + (view.end - view.begin) * share, view.end + (view.end - view.begin) * share);

	function listen() {
		let drag = null;
		canvas.addEventListener('wheel', (e) => {
			e.preventDefault();
			zoom(Math.exp(Math.sign(e.deltaY) * .35), time(Math.max(LABELS, e.offsetX)));
		}, {passive: false});
		canvas.addEventListener('pointerdown', (e) => {
			drag = {px: e.offsetX, ...view};
			canvas.setPointerCapture(e.pointerId);
		});
		canvas.addEventListener('pointerup', () => drag = null);
		canvas.addEventListener('pointermove', (e) => {
			if (drag) {
				const by = (drag.px - e.offsetX) / width() * (drag.end - drag.begin);
				if (Math.abs(drag.px - e.offsetX) > 2) move(drag.begin + by, drag.end + by);
				return;
			}
			if (e.offsetY >= lanesEnd()) {
				hover = callAt(e.offsetX, e.offsetY);
				say();
				return;
			}
			const lane = laneAt(e.offsetY), t = time(e.offsetX), slack = (view.end - view.begin) / width();
			const marks = (e.offsetY - AXIS) % LANE > LANE - MARKS - 2;
			hover = lane ? spans.findLast((s) => s.lane === lane.lane && isMark(s) === marks && s.begin - slack <= t && t <= s.end + slack) || null : null;
			say();
		});
		canvas.addEventListener('dblclick', () => hover && open(hover));
		canvas.addEventListener('keydown', (e) => {
			const keys = {'+': () => zoom(.5, (view.begin + view.end) / 2), '-': () => zoom(2, (view.begin + view.end) / 2), ArrowLeft: () => shift(-.2),
				ArrowRight: () => shift(.2), Home: () => move(all.begin, all.end)};
			if (!keys[e.key]) return;
			e.preventDefault();
			keys[e.key]();
		});
	}
	// What a span's row is, by a query that can be read and changed.
	function open(span) {
		if (span.count > 1) {
			move(span.begin - 1, span.end + 1);
			return;
		}
		if (span.kind === 'call') move(span.begin - (span.end - span.begin) / 2, span.end + (span.end - span.begin) / 2);
		else if (isMark(span)) explorer.go({sql: `SELECT * FROM ${span.kind}s WHERE id = ${span.id}`});
		else if (span.kind === 'exit') explorer.go({name: 'why-slow', 'p.exit': span.id});
		else explorer.go({name: 'branches-between', 'p.trace': explorer.state().trace, 'p.after': Math.floor(span.begin), 'p.until': Math.ceil(span.end)});
	}

	explorer.timeline = {
		async start(begin, end, given) {
			all = {begin, end: Math.max(end, begin + 1)};
			view = given.after && given.until ? {begin: Number(given.after), end: Number(given.until)} : {...all};
			lanes = explorer.objects(await explorer.ask('lanes', 'api/lanes', {db: given.db, 'p.trace': given.trace, limit: 10000}) || {columns: [], rows: []});
			const which = report.choice('Calls', [['', 'of all threads'], ['none', 'not shown']], () => {
				placeStacks();
				fetchSpans();
			});
			which.select.id = 'calls-of';
			at('time-controls').replaceChildren(
				element('button', {type: 'button', onclick: () => move(all.begin, all.end)}, 'All'),
				element('button', {type: 'button', onclick: () => zoom(.5, (view.begin + view.end) / 2)}, 'Closer'),
				element('button', {type: 'button', onclick: () => zoom(2, (view.begin + view.end) / 2)}, 'Farther'),
				element('button', {type: 'button', onclick: () => explorer.go({name: 'branches-between', 'p.trace': explorer.state().trace, 'p.after': Math.floor(view.begin), 'p.until': Math.ceil(view.end)})}, 'Branches of what is shown'), which.label);
			if (!lanes.length) at('readout').textContent = 'Nothing in this trace has a CPU and a time.';
			move(view.begin, view.end, true);
		},
		show: (begin, end) => move(begin, end, true),
	};
	listen();
	report.redraw(() => asked && paint());
})(window.explorer, window.report);
