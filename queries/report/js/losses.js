// losses.js - what was not seen, and how much it hides.
(function (report) {
	'use strict';
	const {element} = report;
	report.losses = () => {
		const kinds = report.objects('loss_kinds'), rows = report.objects('losses'), section = report.section('losses');
		if (!kinds.length) return report.without('losses', 'Nothing was lost, and no error happened.');
		const table = report.makeTable('Losses by kind', [['Kind', 'text', (r) => r.kind], ['Times', 'count', (r) => r.times],
			['Hides', 'time', (r) => r.hidden], ['Share of all CPUs\' time', 'percent', (r) => r.share],
			['Of unknown length', 'count', (r) => r.of_unknown_length], ['For example', 'text', (r) => r.message]], kinds);
		const places = report.makeTable('Places that were not seen', [['Kind', 'text', (r) => r.kind], ['At', 'time', (r) => r.time],
			['Hides', 'time', (r) => r.length], ['CPU', 'count', (r) => r.cpu], ['Message', 'text', (r) => r.message]], rows.slice(0, 500));
		report.sortable(table);
		report.sortable(places);
		section.append(report.scrolling(table), element('h3', {}, 'Where, the longest first'), report.scrolling(places));
		const total = kinds.reduce((s, k) => s + k.times, 0);
		if (total > 500) section.append(element('p', {class: 'note'}, `500 of ${report.count(total)}: pt-query DB errors has all.`));
	};
})(window.report);
