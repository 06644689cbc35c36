// counters.js - instructions per time, and per cycle, over time.
(function (report) {
	'use strict';
	const {element} = report;

	report.counters = () => {
		const rows = report.objects('counters'), section = report.section('counters');
		if (!rows.length) return report.without('counters', 'The trace has no times, so nothing is known over time.');
		const timed = rows.some((r) => r.cycles > 0);
		// Stretches in which nothing was executed have no row: the line has a gap there.
		const step = rows[0].length || 1, known = new Map(rows.map((r) => [Math.round(r.time / step), r])), x = [], rate = [], ipc = [];
		for (let k = 0; k <= Math.max(...known.keys()); k++) {
			const r = known.get(k);
			x.push(r ? r.time : k * step);
			rate.push(r ? r.insns / r.length : null);
			ipc.push(r && r.cycles > 0 ? r.timed / r.cycles : null);
		}
		const unit = report.unit === 'ns' ? 'ns' : 'tick';
		const charts = [[`Instructions per ${unit}`, rate, 'kernel'], ...(timed ? [['Instructions per cycle', ipc, 'guest']] : [])];
		const boxes = charts.map(([name]) => section.appendChild(element('div', {class: 'chart', role: 'img',
			'aria-label': `${name} over time`})));
		if (!timed) section.append(element('p', {class: 'note'}, 'The trace has no cycle counts (CYC packets, pt-capture -e cyc), so instructions per cycle are not known.'));
		const plots = [];
		report.counterData = {x, rate, ipc};
		report.redraw(() => {
			while (plots.length) plots.pop().destroy();
			const text = report.color('text'), grid = {stroke: report.color('line'), width: 1};
			charts.forEach(([name, ys, color], i) => plots.push(new uPlot({
				width: boxes[i].clientWidth || 800, height: 170, cursor: {sync: {key: 'counters'}},
				scales: {x: {time: false}, y: {range: (u, min, max) => [0, (max || 1) * 1.1]}},
				axes: [{stroke: text, grid, values: (u, vs) => vs.map(report.time), space: 90}, {stroke: text, grid, size: 60}],
				series: [{label: 'Time', value: (u, v) => v === null ? '–' : report.time(v)},
					{label: name, stroke: report.color(color), width: 1.5, value: (u, v) => v === null || v === undefined ? '–' : v.toPrecision(4)}],
			}, [x, ys], boxes[i])));
		});
	};
})(window.report);
