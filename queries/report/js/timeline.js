// timeline.js - the time line: what is drawn where, and moving about in it by wheel, drag and keys.
(function (report) {
	'use strict';
	const {element} = report, LABELS = 20, AXIS = 24;
	const heightOf = (lane) => lane.kind === 'calls' ? LABELS + Math.min(lane.rows.length, 40) * lane.rowHeight + 6 : LABELS + lane.height + 6;

	class Painter {
		constructor(canvas, lanes, view) {
			Object.assign(this, {canvas, lanes, view});
			let y = AXIS;
			for (const lane of lanes) {
				lane.top = y;
				y += heightOf(lane);
			}
			this.height = y;
		}
		x(t) {
			return (t - this.view.begin) / (this.view.end - this.view.begin) * this.width;
		}
		time(x) {
			return this.view.begin + x / this.width * (this.view.end - this.view.begin);
		}
		paint() {
			const ratio = window.devicePixelRatio || 1, {canvas} = this;
			this.width = canvas.clientWidth;
			canvas.style.height = `${this.height}px`;
			canvas.width = this.width * ratio;
			canvas.height = this.height * ratio;
			this.c = canvas.getContext('2d');
			this.c.scale(ratio, ratio);
			this.colors = {};
			for (const n of ['text', 'dim', 'page', 'line', 'guest', 'kernel', 'user', 'off', 'lost', 'mark', 'thread', 'call'])
				this.colors[n] = report.color(n);
			this.c.fillStyle = this.colors.page;
			this.c.fillRect(0, 0, this.width, this.height);
			this.axis();
			// On paper all, else what the box shows of it.
			const box = canvas.parentElement, all = matchMedia('print').matches;
			for (const lane of this.lanes)
				if (all || lane.top < box.scrollTop + box.clientHeight && lane.top + heightOf(lane) > box.scrollTop) this.lane(lane);
		}
		axis() {
			const span = this.view.end - this.view.begin, c = this.c;
			let step = 10 ** Math.floor(Math.log10(span / Math.max(2, this.width / 110)));
			while (span / step > this.width / 90) step *= step.toString()[0] === '2' ? 2.5 : 2;
			c.font = '12px system-ui, sans-serif';
			c.textBaseline = 'middle';
			for (let t = Math.ceil(this.view.begin / step) * step; t <= this.view.end; t += step) {
				const x = Math.round(this.x(t)) + .5;
				c.strokeStyle = this.colors.line;
				c.beginPath();
				c.moveTo(x, 0);
				c.lineTo(x, this.height);
				c.stroke();
				c.fillStyle = this.colors.dim;
				// Near each other, times differ far behind the point: whole nanoseconds say where.
				c.fillText(step < 100 ? report.count(Math.round(t)) : report.time(t), x + 4, AXIS / 2);
			}
		}
		lane(lane) {
			const c = this.c;
			c.fillStyle = this.colors.text;
			c.font = '600 12px system-ui, sans-serif';
			c.fillText(lane.name, 4, lane.top + LABELS / 2);
			if (lane.kind === 'calls') lane.rows.slice(0, 40).forEach((row, i) => this.calls(lane, row, i));
			else this.shares(lane);
			if (lane.losses) this.losses(lane);
			if (lane.marks) this.marks(lane);
		}
		// Each pixel shows by its height which part of its time is of which kind.
		shares(lane) {
			const {spans} = lane, top = lane.top + LABELS, c = this.c, per = this.time(1) - this.time(0);
			c.strokeStyle = this.colors.line;
			c.setLineDash([2, 3]);
			c.strokeRect(.5, top + .5, this.width - 1, lane.height - 1);
			c.setLineDash([]);
			for (let x = 0; x < this.width; x++) {
				let y = top + lane.height;
				lane.colors.forEach((color, k) => {
					const h = lane.height * Math.min(1, spans.covered(k, this.time(x), this.time(x + 1)) / per);
					if (h <= 0) return;
					c.fillStyle = this.colors[color];
					c.fillRect(x, y - h, 1, h);
					y -= h;
				});
			}
			const first = Math.max(0, report.lowerBound(spans.begin, this.view.begin) - 1), past = report.lowerBound(spans.begin, this.view.end);
			for (let i = first; i < past && past - first < 5000; i++) {
				const a = Math.max(0, this.x(spans.begin[i])), b = Math.min(this.width, this.x(spans.end[i]));
				if (b - a > 40) this.text(spans.tag[i], a, b, top + lane.height / 2);
			}
		}
		text(s, a, b, y) {
			const c = this.c;
			c.save();
			c.beginPath();
			c.rect(a, y - 12, b - a - 2, 24);
			c.clip();
			c.font = '11px system-ui, sans-serif';
			c.lineWidth = 3;
			c.strokeStyle = this.colors.page;
			c.strokeText(s, a + 4, y);
			c.fillStyle = this.colors.text;
			c.fillText(s, a + 4, y);
			c.restore();
		}
		calls(lane, row, depth) {
			const y = lane.top + LABELS + depth * lane.rowHeight, c = this.c, h = lane.rowHeight - 1;
			let drawn = -2;
			for (let i = report.lowerBound(row.ends, this.view.begin); i < row.calls.length && row.begin[i] <= this.view.end; i++) {
				const a = Math.max(-1, this.x(row.begin[i])), b = Math.min(this.width + 1, this.x(row.begin[i] + row.calls[i].length));
				// Short ones in the same pixel are not seen apart.
				if (b < 0 || b - a < 1 && Math.floor(a) === drawn) continue;
				drawn = Math.floor(b);
				c.fillStyle = this.colors.call;
				c.fillRect(a, y, Math.max(b - a - .5, .7), h);
				if (b - a <= 30) continue;
				c.save();
				c.beginPath();
				c.rect(a, y, b - a - 1, h);
				c.clip();
				c.fillStyle = '#000';
				c.font = '11px system-ui, sans-serif';
				c.fillText(lane.nameOf(row.calls[i].path), Math.max(a, 0) + 3, y + h / 2 + .5);
				c.restore();
			}
		}
		losses(lane) {
			const c = this.c, top = lane.top + LABELS;
			c.strokeStyle = this.colors.lost;
			for (const l of lane.losses) {
				const a = this.x(l.time), b = Math.max(a + 2, this.x(l.time + (l.length || 0)));
				if (b < 0 || a > this.width) continue;
				c.save();
				c.beginPath();
				c.rect(Math.max(0, a), top, Math.min(this.width, b) - Math.max(0, a), lane.height);
				c.clip();
				for (let x = Math.max(0, a) - lane.height; x < Math.min(this.width, b); x += 6) {
					c.beginPath();
					c.moveTo(x, top + lane.height);
					c.lineTo(x + lane.height, top);
					c.stroke();
				}
				c.restore();
			}
		}
		marks(lane) {
			let i = report.lowerBound(lane.markTimes, this.view.begin);
			this.c.fillStyle = this.colors.mark;
			while (i < lane.marks.length && lane.markTimes[i] <= this.view.end) {
				const x = this.x(lane.markTimes[i]);
				this.c.fillRect(x, lane.top + LABELS - 5, 1, 5);
				i = Math.max(i + 1, report.lowerBound(lane.markTimes, this.time(Math.floor(x) + 1), i));
			}
		}
		// What is at a place, in words.
		at(x, y) {
			const lane = this.lanes.find((l) => y >= l.top && y < l.top + heightOf(l)), t = this.time(x), near = this.time(3) - this.time(0);
			if (!lane) return null;
			if (lane.marks && y < lane.top + LABELS) {
				const i = report.lowerBound(lane.markTimes, t - near), m = lane.marks[i];
				if (m && m.time <= t + near) return {text: `${m.name} at ${report.count(m.time)} ${report.unit}`};
			}
			if (lane.kind === 'calls') {
				const row = lane.rows[Math.floor((y - lane.top - LABELS) / lane.rowHeight)];
				const i = row ? report.lowerBound(row.ends, t) : -1, c = row && row.calls[i];
				if (!c || c.time > t + near) return {text: lane.name};
				return {text: `${lane.nameOf(c.path)}: ${report.count(c.length)} ${report.unit}, ${report.count(c.insns)} instructions, from ` +
					`${report.count(c.time)}`, begin: c.time, length: c.length};
			}
			const lost = (lane.losses || []).find((l) => t >= l.time - near && t <= l.time + (l.length || 0) + near);
			if (lost) return {text: `not seen: ${lost.kind}, ${lost.length === null ? 'of unknown length' : report.time(lost.length)}: ${lost.message}`};
			const i = lane.spans.find(t);
			if (i < 0) return {text: `${lane.name}: nothing is known of this time`};
			const parts = lane.parts.map((p, k) => [p, lane.spans.part(k, i)]).filter(([, v]) => v > 0);
			return {text: `${lane.name}: ${lane.spans.tag[i]}, ${parts.map(([p, v]) => `${p} ${report.count(v)} ${report.unit}`).join(', ')}, from ` +
				`${report.count(lane.spans.begin[i])}`, begin: lane.spans.begin[i], length: lane.spans.end[i] - lane.spans.begin[i],
			exit: /^exit (\d+)/.exec(lane.spans.tag[i])};
		}
	}

	const LEGEND = [['guest', 'in the guest'], ['kernel', 'host kernel'], ['user', 'VM process'], ['off', 'off the CPU'], ['thread', 'thread on the CPU'],
		['call', 'call'], ['mark', 'event, interrupt'], ['gap', 'not known'], ['lost', 'not seen: loss, error']];

	report.timeline = (trace, exits, paths) => {
		const section = report.section('over-time'), end = trace.end_time;
		if (!(end > 0)) return report.without('over-time', 'The trace has no times, so there is no time line.');
		const lanes = report.lanes(exits, paths), view = report.view = {begin: 0, end};
		for (const lane of lanes) lane.nameOf = (path) => paths.get(path) ? paths.get(path).name : '[unknown]';
		if (!lanes.length) return report.without('over-time', 'Nothing in the trace has a time.');
		const canvas = element('canvas', {class: 'timeline', tabindex: 0, role: 'application', 'aria-roledescription': 'time line',
			'aria-label': 'Time line. Arrow keys left and right move, plus and minus zoom, Home shows all', 'aria-describedby': 'readout'});
		const readout = element('p', {class: 'readout', id: 'readout', role: 'status'}), range = element('output', {id: 'range'});
		const painter = new Painter(canvas, lanes, view);
		let queued = false;
		const paint = () => {
			queued = false;
			painter.paint();
			range.textContent = `${report.time(view.begin)} – ${report.time(view.end)} (${report.time(view.end - view.begin)})`;
		};
		const later = () => {
			if (!queued) requestAnimationFrame(paint);
			queued = true;
		};
		const set = (begin, length) => {
			length = Math.min(Math.max(length, 20), end);
			view.begin = Math.min(Math.max(begin, 0), end - length);
			view.end = view.begin + length;
			later();
		};
		const zoom = (by, at = (view.begin + view.end) / 2) => set(at - (at - view.begin) * by, (view.end - view.begin) * by);
		const move = (by) => set(view.begin + (view.end - view.begin) * by, view.end - view.begin);
		report.zoomTo = (begin, length) => {
			set(begin - length, 3 * length);
			section.scrollIntoView({block: 'start'});
		};
		const button = (text, name, act) => element('button', {type: 'button', 'aria-label': name, title: name, onclick: act}, text);
		section.append(
			element('div', {class: 'controls'}, button('+', 'Zoom in', () => zoom(.5)), button('−', 'Zoom out', () => zoom(2)),
				button('◀', 'Move left', () => move(-.25)), button('▶', 'Move right', () => move(.25)), button('All', 'Show all', () => set(0, end)), range),
			element('p', {class: 'dim timeline-help'}, 'Wheel zooms, dragging moves; keys: arrows, + and −, Home. A double click zooms to what is there.'),
			element('ul', {class: 'legend'}, ...LEGEND.filter(([k]) => exits.n || !['guest', 'kernel', 'user', 'off'].includes(k)).map(([k, text]) =>
				element('li', {}, element('i', {class: `i-${k}`}), text))),
			readout, element('div', {class: 'timeline-box'}, canvas));
		notes(trace, section);

		const place = (e) => {
			const r = canvas.getBoundingClientRect();
			return [e.clientX - r.left, e.clientY - r.top];
		};
		canvas.addEventListener('wheel', (e) => {
			if (e.shiftKey) return;
			e.preventDefault();
			if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) move(e.deltaX / painter.width);
			else zoom(1.2 ** (e.deltaY / 60), painter.time(place(e)[0]));
		}, {passive: false});
		let drag = null;
		canvas.addEventListener('pointerdown', (e) => {
			canvas.setPointerCapture(e.pointerId);
			drag = {x: e.clientX, begin: view.begin};
		});
		canvas.addEventListener('pointerup', () => drag = null);
		canvas.addEventListener('pointermove', (e) => {
			if (drag) return set(drag.begin - (e.clientX - drag.x) / painter.width * (view.end - view.begin), view.end - view.begin);
			const found = painter.at(...place(e));
			readout.textContent = found ? found.text : '';
		});
		canvas.addEventListener('dblclick', (e) => {
			const found = painter.at(...place(e));
			if (!found || found.begin === undefined) return;
			set(found.begin - found.length / 2, found.length * 2);
		});
		canvas.addEventListener('keydown', (e) => {
			const act = {ArrowLeft: () => move(-.1), ArrowRight: () => move(.1), '+': () => zoom(.7), '=': () => zoom(.7), '-': () => zoom(1 / .7),
				Home: () => set(0, end)}[e.key];
			if (!act || e.ctrlKey || e.metaKey) return;
			e.preventDefault();
			act();
			readout.textContent = `From ${report.time(view.begin)} to ${report.time(view.end)}`;
		});
		canvas.parentElement.addEventListener('scroll', later);
		report.redraw(paint);
		report.timelineAt = (x, y) => painter.at(x, y);
		report.timelineLanes = lanes;
	};

	function notes(trace, section) {
		const limits = report.json('limits'), calls = report.table('calls').rows.length;
		const note = (...text) => section.append(element('p', {class: 'note'}, ...text));
		if (trace.calls > calls) note(`The file has the ${report.count(calls)} longest of ${report.count(trace.calls)} calls, as far as their times are known; ` +
			`shorter ones: pt-query DB slowest-calls, function-latency.`);
		if (report.threadsLeftOut) note(`Calls of ${report.threadsLeftOut} more threads are not drawn.`);
		if (trace.vm_exits > limits.exits) note(`The ${report.count(limits.exits)} slowest VM exits are drawn.`);
		const thinned = new Map(report.objects('marks').filter((m) => m.every > 1).map((m) => [m.name, m.every]));
		for (const [name, every] of thinned) note(`Of ${name} one in ${report.count(every)} is drawn.`);
		if (trace.vm_exits) note('Inside one VM exit the shares of kernel, VM process and off the CPU are drawn by height: when in the exit each was is not said.');
	}
})(window.report);
