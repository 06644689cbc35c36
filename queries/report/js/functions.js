// functions.js - the hottest functions, and the instructions of one.
(function (report) {
	'use strict';
	const {element} = report;

	function instructions(f) {
		if (!f.rows) return element('p', {class: 'note'}, `${f.name} cannot be shown: ${f.why}`);
		const {columns, rows} = f.rows, at = Object.fromEntries(columns.map((c, i) => [c, i]));
		const most = Math.max(...rows.map((r) => r[at.count] || 0));
		const cols = [['Offset', 'code', (r) => r[at.offset] === null ? '' : String(r[at.offset])], ['Count', 'count', (r) => r[at.count]]];
		if (rows.some((r) => r[at.cycles] !== null)) cols.push(['Cycles', 'count', (r) => r[at.cycles]], ['IPC', 'ratio', (r) => r[at.ipc]]);
		cols.push(['Instruction', 'code', (r) => r[at.code] || ''], ['Branches', 'text', (r) => r[at.branches] || ''], ['Loop', 'text', (r) => r[at.loop] || '']);
		const table = report.makeTable(`Instructions of ${f.name}`, cols, rows);
		rows.forEach((r, i) => {
			if (r[at.count] === most) table.tBodies[0].rows[i].className = 'chosen';
		});
		return report.scrolling(table);
	}

	report.functions = () => {
		const section = report.section('functions'), rows = report.objects('functions');
		if (!rows.length) return report.without('functions', 'No instruction was executed.');
		const annotated = report.json('annotate'), place = element('div', {id: 'annotated', 'aria-live': 'polite'});
		const has = (r) => annotated.find((f) => f.name === r.symbol && f.dso === (r.dso || ''));
		const show = (r, button) => {
			for (const b of section.querySelectorAll('button[aria-pressed]')) b.setAttribute('aria-pressed', String(b === button));
			place.replaceChildren(element('h3', {}, `${r.name}, instruction by instruction`), instructions(has(r)));
		};
		const table = report.makeTable('Hottest functions', [
			['Function', 'node', (r) => has(r) ? element('button', {type: 'button', 'aria-pressed': 'false', onclick: (e) => show(r, e.currentTarget)}, r.name) :
				element('code', {}, r.name)],
			['Instructions', 'count', (r) => r.insns], ['Share', 'percent', (r) => r.percent], ['Cycles', 'count', (r) => r.cycles], ['IPC', 'ratio', (r) => r.ipc],
			['Calls', 'count', (r) => r.calls], ['Branches', 'count', (r) => r.branches], ['Machine', 'text', (r) => r.machine], ['File', 'text', (r) => r.dso]], rows);
		report.sortable(table);
		section.append(report.scrolling(table), element('p', {class: 'note'}, 'Those with a button are shown instruction by instruction; others: ',
			element('code', {}, 'pt-query DB annotate -p function=NAME'), '.'), place);
	};
})(window.report);
