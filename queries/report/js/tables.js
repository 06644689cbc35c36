// tables.js - tables that are made here, and sorting of all of them.
(function (report) {
	'use strict';
	const number = (cell) => {
		const data = cell.querySelector('data');
		return Number(data ? data.value : cell.textContent);
	};

	// Each head becomes a button that sorts by its column, numbers from the largest.
	report.sortable = (table) => {
		[...table.tHead.rows[0].cells].forEach((th, i) => {
			const button = report.element('button', {type: 'button'}, ...th.childNodes);
			th.append(button);
			th.setAttribute('scope', 'col');
			button.addEventListener('click', () => {
				const body = table.tBodies[0], rows = [...body.rows];
				const numeric = rows.some((r) => r.cells[i].classList.contains('n'));
				const was = th.getAttribute('aria-sort');
				const way = was ? (was === 'ascending' ? -1 : 1) : numeric ? -1 : 1;
				for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
				th.setAttribute('aria-sort', way > 0 ? 'ascending' : 'descending');
				const empty = (r) => r.cells[i].classList.contains('null');
				rows.sort((a, b) => {
					if (empty(a) || empty(b)) return empty(a) - empty(b);
					const x = a.cells[i], y = b.cells[i];
					return way * (numeric ? number(x) - number(y) : x.textContent.localeCompare(y.textContent));
				});
				body.append(...rows);
			});
		});
	};

	// columns: [head, unit, value of a row]; unit 'text': a text, 'node': an element, else as report.value().
	report.makeTable = (caption, columns, rows, className) => {
		const head = report.element('tr', {}, ...columns.map(([name]) => report.element('th', {}, name)));
		const body = report.element('tbody', {}, ...rows.map((row) => report.element('tr', {}, ...columns.map(([, unit, get]) => {
			const v = get(row);
			if (v === null || v === undefined) return report.element('td', {class: 'null', title: 'not known'}, '–');
			if (unit === 'node') return report.element('td', {}, v);
			if (unit === 'text' || unit === 'code')
				return report.element('td', {class: unit === 'code' ? 'code' : null, title: v.length > 40 ? v : null}, v);
			return report.element('td', {class: 'n'}, report.value(unit, v));
		}))));
		const table = report.element('table', {class: className || '', 'aria-label': caption},
			report.element('thead', {}, head), body);
		return table;
	};
	report.scrolling = (table) => report.element('div', {class: 'scroll', tabindex: 0, role: 'region',
		'aria-label': table.getAttribute('aria-label')}, table);

	// The tables at the end: plain ones of the canned queries.
	report.finishTables = () => {
		for (const section of document.querySelectorAll('#tables section')) {
			const table = section.querySelector('table');
			if (!table) continue;
			table.setAttribute('aria-label', section.querySelector('h2').textContent);
			table.setAttribute('tabindex', 0);
			report.sortable(table);
		}
	};
})(window.report);
