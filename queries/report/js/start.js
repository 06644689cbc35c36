// start.js - puts the parts into the page.
(function (report) {
	'use strict';
	const nav = document.querySelector('nav');
	for (const s of [...document.querySelectorAll('main > section'), document.getElementById('tables')]) {
		const heading = s.querySelector('h2, summary');
		nav.append(report.element('a', {href: `#${s.id}`}, heading.textContent));
	}
	const [trace] = report.objects('trace');
	if (!trace) return report.without('findings', 'The database has no trace.');
	report.unit = trace.unit;
	report.summary(trace);
	const paths = report.paths(), exits = report.readExits();
	report.latency(exits, paths);
	report.timeline(trace, exits, paths);
	report.counters();
	report.flame(trace, paths);
	report.functions();
	report.losses();
	report.finishTables();
})(window.report);
