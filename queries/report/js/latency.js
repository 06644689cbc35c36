// latency.js - VM exits by reason: a histogram of one reason's latencies, the exits of one bar, one exit's host calls.
(function (report) {
	'use strict';
	const {element, value} = report;
	const PER_DECADE = 8, LISTED = 200;

	// Columns as arrays of numbers; NaN: not known.
	report.readExits = () => {
		const t = report.table('exits'), {at} = t, n = t.rows.length, x = {n};
		const column = (name) => Float64Array.from(t.rows, (r) => r[at[name]] === null ? NaN : r[at[name]]);
		for (const c of ['latency', 'reason', 'machine', 'vcpu', 'cpu', 'off_cpu', 'userspace', 'inside']) x[c] = column(c);
		const sum = (name) => {
			let s = 0;
			return column(name).map((v) => s += v);
		};
		x.id = sum('id_after');
		x.time = sum('after');
		return x;
	};
	const bucketOf = (latency) => Math.floor(Math.log10(Math.max(latency, 1)) * PER_DECADE);
	const beginOf = (bucket) => 10 ** (bucket / PER_DECADE);

	report.latency = (exits, paths) => {
		const machines = new Map(report.objects('machines').map((m) => [m.id, m.name]));
		const reasons = report.objects('reasons'), section = report.section('latency');
		if (!reasons.length) return report.without('latency', 'No VM exits are in this trace.');
		const nameOf = new Map(reasons.map((r) => [r.reason === null ? 'NaN' : String(r.reason), r.name]));
		const trees = new Map(), calls = report.table('exit_calls');
		for (const r of calls.rows) {
			const o = Object.fromEntries(calls.columns.map((c, i) => [c, r[i]]));
			if (!trees.has(o.exit)) trees.set(o.exit, []);
			trees.get(o.exit).push(o);
		}
		const total = reasons.reduce((s, r) => s + r.exits, 0);
		const chart = element('div', {class: 'chart', id: 'histogram'}), list = element('div', {id: 'exits-of-bar'});
		const tree = element('div', {id: 'exit-tree', 'aria-live': 'polite'});
		const table = report.makeTable('VM exits by reason', [
			['Reason', 'node', (r) => element('button', {type: 'button', 'data-reason': String(r.reason), 'data-machine': String(r.machine),
				'aria-pressed': 'false', onclick: () => choose(r)}, r.name)],
			['VM', 'text', (r) => r.machine], ['Exits', 'count', (r) => r.exits], ['p50', 'time', (r) => r.p50],
			['p99', 'time', (r) => r.p99], ['Max', 'time', (r) => r.max], ['Total', 'time', (r) => r.total],
			['Share of exit time', 'percent', (r) => r.percent]], reasons);
		let chosen, plot, bars = [], first = 0, selected = -1;
		report.sortable(table);
		const wanted = element('input', {type: 'number', min: 1, id: 'exit-wanted', 'aria-label': 'Number of a VM exit', placeholder: 'number'});
		const answer = element('span', {role: 'status', class: 'dim', id: 'exit-answer'});
		const find = () => answer.textContent = !wanted.value || report.showExit(Number(wanted.value)) ? '' :
			`Exit ${wanted.value} is not in this file, or its latency is not known: pt-query DB why-slow -p exit=${wanted.value}`;
		wanted.addEventListener('change', find);
		section.append(report.scrolling(table), element('div', {class: 'controls'}, element('label', {}, 'Find exit', wanted),
			element('button', {type: 'button', onclick: find}, 'Show'), answer), chart, list, tree);
		if (exits.n < total) section.append(element('p', {class: 'note'}, 'The file has the ', value('count', exits.n),
			' slowest of ', value('count', total), ' exits: the numbers in the table are of all, bars and lists of those.'));

		// Labels of marks that are at one place are one.
		function labels() {
			const by = new Map();
			for (const [name, v] of [['p50', chosen.p50], ['p99', chosen.p99], ['max', chosen.max]])
				if (v !== null) by.set(v, by.has(v) ? `${by.get(v)}, ${name}` : name);
			return [...by];
		}
		function marks(u) {
			const {ctx} = u, em = 13 * devicePixelRatio;
			ctx.save();
			ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
			ctx.textBaseline = 'middle';
			ctx.textAlign = 'left';
			ctx.lineWidth = 2 * devicePixelRatio;
			labels().forEach(([v, names], row) => {
				const x = u.valToPos(Math.log10(Math.max(v, 1)) * PER_DECADE, 'x', true), text = ` ${names} ${report.time(v)} `;
				const width = ctx.measureText(text).width, y = u.bbox.top + (row + .7) * 1.3 * em;
				const left = x + width > u.bbox.left + u.bbox.width ? x - width : x;
				ctx.setLineDash([6, 4]);
				ctx.strokeStyle = report.color('mark');
				ctx.beginPath();
				ctx.moveTo(x, u.bbox.top);
				ctx.lineTo(x, u.bbox.top + u.bbox.height);
				ctx.stroke();
				ctx.fillStyle = report.color('page');
				ctx.fillRect(left + (left < x ? -2 : 2), y - .6 * em, width, 1.2 * em);
				ctx.fillStyle = report.color('mark');
				ctx.fillText(text, left, y);
			});
			ctx.restore();
		}

		function draw() {
			if (plot) plot.destroy();
			chart.replaceChildren();
			if (!bars.length) return;
			// Whole decades.
			first = Math.floor(bars[0].bucket / PER_DECADE) * PER_DECADE;
			const last = Math.ceil((bars[bars.length - 1].bucket + 1) / PER_DECADE) * PER_DECADE, xs = [], ys = [];
			for (let b = first; b < last; b++) xs.push(b + .5), ys.push(0);
			for (const b of bars) ys[b.bucket - first] = b.exits.length;
			const text = report.color('text'), grid = {stroke: report.color('line'), width: 1};
			plot = new uPlot({
				width: chart.clientWidth || 800, height: 260, legend: {show: false}, cursor: {drag: {x: false, y: false}},
				scales: {x: {time: false, range: [first, last]},
					y: {range: (u, min, max) => [0, max * 1.1]}},
				axes: [{stroke: text, grid, splits: (u, i, min, max) => {
					const s = [];
					for (let v = Math.ceil(min / PER_DECADE) * PER_DECADE; v <= max; v += PER_DECADE) s.push(v);
					return s;
				}, values: (u, vs) => vs.map((v) => report.time(10 ** (v / PER_DECADE)))},
				{stroke: text, grid, size: 70, label: 'exits', values: (u, vs) => vs.map((v) => v % 1 ? '' : report.count(v))}],
				series: [{}, {fill: report.color('kernel'), stroke: report.color('kernel'), paths: uPlot.paths.bars({size: [.92, Infinity]}),
					points: {show: false}}],
				hooks: {draw: [marks, selection], ready: [(u) => u.over.addEventListener('click', () => pick(u.cursor.idx))]},
			}, [xs, ys], chart);
			plot.over.id = 'bars';
			plot.over.setAttribute('role', 'slider');
			plot.over.setAttribute('tabindex', 0);
			plot.over.setAttribute('aria-label', `Latencies of ${chosen.name}: arrow keys choose a bar`);
			plot.over.setAttribute('aria-valuemin', 0);
			plot.over.setAttribute('aria-valuemax', xs.length - 1);
			describe();
			plot.over.addEventListener('keydown', (e) => {
				const step = {ArrowLeft: -1, ArrowRight: 1}[e.key];
				if (!step) return;
				e.preventDefault();
				const now = bars.findIndex((b) => b.bucket - first === selected);
				pick(bars[Math.max(0, Math.min(bars.length - 1, now < 0 ? 0 : now + step))].bucket - first);
			});
		}
		function describe() {
			const bar = bars.find((b) => b.bucket - first === selected);
			plot.over.setAttribute('aria-valuenow', Math.max(selected, 0));
			plot.over.setAttribute('aria-valuetext', bar ? `${bar.exits.length} ${bar.exits.length === 1 ? 'exit' : 'exits'} from ${report.time(beginOf(bar.bucket))}` :
				'no bar is chosen');
		}
		function selection(u) {
			if (selected < 0) return;
			const x = first + selected, a = u.valToPos(x, 'x', true), b = u.valToPos(x + 1, 'x', true);
			u.ctx.save();
			u.ctx.strokeStyle = report.color('text');
			u.ctx.lineWidth = 2 * devicePixelRatio;
			u.ctx.strokeRect(a, u.bbox.top, b - a, u.bbox.height);
			u.ctx.restore();
		}

		function choose(r) {
			chosen = r;
			selected = -1;
			for (const b of table.querySelectorAll('button[data-machine], button[aria-pressed]'))
				b.setAttribute('aria-pressed', String(b.dataset.reason === String(r.reason) && b.dataset.machine === String(r.machine)));
			const by = new Map();
			for (let i = 0; i < exits.n; i++) {
				const same = Number.isNaN(exits.reason[i]) ? r.reason === null : exits.reason[i] === r.reason;
				if (!same || machines.get(exits.machine[i]) !== r.machine || Number.isNaN(exits.latency[i])) continue;
				const b = bucketOf(exits.latency[i]);
				if (!by.has(b)) by.set(b, []);
				by.get(b).push(i);
			}
			bars = [...by].map(([bucket, e]) => ({bucket, exits: e})).sort((a, b) => a.bucket - b.bucket);
			list.replaceChildren(element('p', {class: 'note'}, bars.length ? 'A click on a bar, or the arrow keys, list its exits.' :
				'Of none of these exits the latency is known.'));
			tree.replaceChildren();
			draw();
		}

		function pick(index) {
			const bar = bars.find((b) => b.bucket - first === index);
			if (!bar) return;
			selected = index;
			plot.redraw(false);
			describe();
			const sorted = bar.exits.sort((a, b) => exits.latency[b] - exits.latency[a]), known = (v) => Number.isNaN(v) ? null : v;
			list.replaceChildren(element('h3', {}, value('count', sorted.length), ` ${sorted.length === 1 ? 'exit' : 'exits'} of ${chosen.name} that took `,
				value('time', beginOf(bar.bucket)), ' to ', value('time', beginOf(bar.bucket + 1)),
				sorted.length > LISTED ? `, the slowest ${LISTED}` : ''));
			const rows = report.makeTable('Exits of the bar', [
				['Exit', 'node', (i) => element('button', {type: 'button', 'data-exit': exits.id[i], onclick: () => show(i)}, `${exits.id[i]}`)],
				['Latency', 'time', (i) => exits.latency[i]], ['At', 'time', (i) => exits.time[i]],
				['vCPU', 'count', (i) => known(exits.vcpu[i])], ['CPU', 'count', (i) => known(exits.cpu[i])],
				['Off the CPU', 'time', (i) => known(exits.off_cpu[i])], ['In the VM process', 'time', (i) => known(exits.userspace[i])]],
			sorted.slice(0, LISTED));
			report.sortable(rows);
			list.append(report.scrolling(rows));
			tree.replaceChildren();
		}

		function show(i) {
			const id = exits.id[i], rows = trees.get(id);
			tree.replaceChildren(element('h3', {}, `Host calls of exit ${id}, ${nameOf.get(String(exits.reason[i]))}, `,
				value('time', exits.latency[i]), ' '), element('button', {type: 'button', onclick: () => report.zoomTo(exits.time[i],
				exits.latency[i])}, 'Show it in the time line'));
			tree.append(rows ? report.scrolling(report.callTree(paths, id, rows)) : element('p', {class: 'note'},
				'This exit\'s calls are not in the file, or there were none: ',
				element('code', {}, `pt-query DB why-slow -p exit=${id}`), ' has them. ',
				'In it are the ten slowest of each reason, and three of each length.'));
		}
		// From elsewhere: the exit of that number. False: the file does not have it, or not its latency.
		report.showExit = (id) => {
			const i = exits.id.indexOf(id);
			if (i < 0 || Number.isNaN(exits.latency[i])) return false;
			choose(reasons.find((r) => machines.get(exits.machine[i]) === r.machine &&
				(r.reason === null ? Number.isNaN(exits.reason[i]) : r.reason === exits.reason[i])));
			pick(bucketOf(exits.latency[i]) - first);
			show(i);
			tree.scrollIntoView({block: 'nearest'});
			return true;
		};
		choose(reasons[0]);
		report.redraw(draw);
	};
})(window.report);
