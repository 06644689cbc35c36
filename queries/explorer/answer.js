// answer.js - rows as a table that sorts, or as a chart of their numbers over the first column.
(function (explorer, report) {
	'use strict';
	const {element} = report, colors = ['guest', 'kernel', 'user', 'mark', 'off', 'call'];
	const at = (id) => document.getElementById(id);
	let shown = null, chart = null;

	const isNumbers = (t, c) => t.rows.some((r) => typeof r[c] === 'number') && t.rows.every((r) => r[c] === null || typeof r[c] === 'number');
	const compare = (a, b) => a === b ? 0 : a === null ? 1 : b === null ? -1
		: typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'en', {numeric: true});
	// Of what counts or measures; ids, times and addresses stay as they are.
	const text = (name, v) => v === null ? '–' : typeof v === 'number' && /(_ns|_tsc|count|branches|insns|instructions|calls|exits|cycles|taken)$/.test(name)
		&& !/^(time|tsc)/.test(name) ? report.count(v) : String(v);

	function body(t) {
		return element('tbody', {}, ...t.rows.map((row) => element('tr', {}, ...row.map((v, i) => element('td',
			{class: v === null ? 'null' : typeof v === 'number' ? 'n' : null, title: v === null ? 'not known' : String(v)}, text(t.columns[i], v))))));
	}

	function table(t) {
		let sorted = -1, down = false;
		const box = element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Rows'});
		const heads = t.columns.map((name, i) => element('th', {scope: 'col'}, element('button', {type: 'button', onclick: () => {
			down = sorted === i ? !down : isNumbers(t, i);
			sorted = i;
			t.rows.sort((a, b) => (down ? -1 : 1) * compare(a[i], b[i]));
			heads.forEach((h, k) => k === i ? h.setAttribute('aria-sort', down ? 'descending' : 'ascending') : h.removeAttribute('aria-sort'));
			box.querySelector('tbody').replaceWith(body(t));
		}}, name)));
		box.append(element('table', {}, element('thead', {}, element('tr', {}, ...heads)), body(t)));
		return box;
	}

	// The columns of numbers over the first one, when that has numbers; else over the row's number.
	function draw(t, box) {
		const numbers = t.columns.map((_, i) => i).filter((i) => isNumbers(t, i));
		const over = numbers[0] === 0 && numbers.length > 1 ? numbers.shift() : null;
		if (!numbers.length) {
			box.append(element('p', {class: 'note'}, 'No column has numbers only: there is nothing to draw.'));
			return;
		}
		const rows = over === null ? t.rows : [...t.rows].sort((a, b) => a[over] - b[over]);
		const axis = {stroke: report.color('text'), grid: {stroke: report.color('line'), width: 1}, ticks: {stroke: report.color('line'), width: 1}};
		chart = new uPlot({
			width: Math.max(300, box.clientWidth), height: 320, scales: {x: {time: false}}, axes: [{...axis, space: 120}, {...axis, size: 100}],
			series: [{label: over === null ? 'row' : t.columns[over]}, ...numbers.slice(0, 6).map((i, k) => (
				{label: t.columns[i], stroke: report.color(colors[k]), width: 1.5, points: {show: rows.length < 200}}))],
		}, [rows.map((r, n) => over === null ? n + 1 : r[over]), ...numbers.slice(0, 6).map((i) => rows.map((r) => r[i]))], box);
	}

	function show(how) {
		const box = at('rows');
		if (chart) chart.destroy();
		chart = null;
		box.replaceChildren();
		if (!shown) return;
		for (const b of at('answer-controls').querySelectorAll('button[data-show]')) b.setAttribute('aria-pressed', String(b.dataset.show === how));
		if (how === 'chart') draw(shown, box);
		else box.append(table(shown));
	}

	explorer.answer = {
		show,
		clear() {
			shown = null;
			show('table');
			at('state').replaceChildren();
		},
		state(words, wrong) {
			at('state').className = wrong ? 'error' : 'dim';
			at('state').textContent = words;
		},
		rows(t, how) {
			shown = t;
			this.state(`${report.count(t.rows.length)} ${t.rows.length === 1 ? 'row' : 'rows'}${t.more ? ', and there are more' : ''}, in ${report.time(t.elapsed_ns)}${t.note ? `; ${t.note}` : ''}`);
			show(how);
		},
	};
})(window.explorer, window.report);
