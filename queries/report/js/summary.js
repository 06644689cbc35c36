// summary.js - what was traced, how complete it is, what stands out.
(function (report) {
	'use strict';
	const {element, value} = report;

	const parts = (text) => JSON.parse(text).map((p) => {
		if (typeof p === 'string') return p;
		if (p.name !== undefined) return element('code', {}, String(p.name));
		if (p.exit !== undefined)
			return element('button', {type: 'button', onclick: () => report.showExit && report.showExit(p.exit)}, `exit ${p.exit}`);
		const [unit, v] = Object.entries(p)[0];
		return value(unit, v);
	});

	function completeness(t) {
		const kinds = report.objects('loss_kinds');
		if (t.complete === 0)
			return ['incomplete', 'Not complete: the recording was cut or damaged.'];
		if (!t.errors) return t.complete === 1 ? ['complete', 'Complete: everything that was traced was decoded.'] : ['incomplete',
			'Whether the recording is complete is not known.'];
		const hidden = kinds.reduce((s, k) => s + (k.hidden || 0), 0);
		const unknown = kinds.reduce((s, k) => s + k.of_unknown_length, 0);
		return ['incomplete', 'Not complete: ', value('count', t.errors), t.errors === 1 ? ' place was not seen. It hides ' : ' places were not seen. They hide ', value('time', hidden),
			unknown ? ` and ${report.count(unknown)} ${unknown === 1 ? 'stretch' : 'stretches'} of unknown length` : '', ': see ', element('a', {href: '#losses'},
				'errors and losses'), '.'];
	}

	report.summary = (t) => {
		document.querySelector('h1').textContent = t.name || t.command || 'Trace report';
		const what = document.getElementById('what');
		what.append([t.host, t.kernel && `Linux ${t.kernel}`, t.cpu, t.start && `${t.start} UTC`, `recorded by ${t.engine}`]
			.filter(Boolean).join(' · '));
		if (t.synthetic) what.append(' · branches are real, time is a model');
		if (t.traces > 1) what.append(` · trace ${t.id} of ${t.traces} in this database: pt-query DB report -p trace=N has another`);
		const facts = [['Duration', 'time', t.end_time], ['CPUs', 'count', t.cpus || null], ['Threads', 'count', t.threads],
			['Instructions', 'count', t.insn_count], ['Branches taken', 'count', t.branches], ['Cycles', 'count', t.cyc_count],
			['Calls', 'count', t.calls], ['VM exits', 'count', t.vm_exits || null], ['Events', 'count', t.events]];
		const [state, ...text] = completeness(t);
		report.section('findings').append(
			element('dl', {class: 'facts'}, ...facts.filter(([, , v]) => v !== null).map(([name, unit, v]) =>
				element('div', {}, element('dt', {}, name), element('dd', {}, value(unit, v))))),
			element('p', {class: state}, ...text),
			element('ul', {class: 'findings'}, ...report.objects('findings').map((f) => element('li', {}, ...parts(f.text)))));
	};
})(window.report);
