// start.js - a view is the address's fragment: #db=0&trace=1&after=NS&until=NS&name=QUERY&p.X=Y, or sql=..., and show=chart.
(function (explorer, report) {
	'use strict';
	const {element} = report;
	const at = (id) => document.getElementById(id);
	let about = null, asked = 0;

	explorer.state = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
	const fragment = (state) => `#${new URLSearchParams(Object.entries(state).filter(([, v]) => v !== undefined && v !== ''))}`;
	const ofQuestion = (key) => key === 'name' || key === 'sql' || key === 'show' || key.startsWith('p.');
	// A question, beside which database, trace and part of the time line stay.
	explorer.go = (question) => {
		at('state').dataset.asked = ++asked;
		const kept = Object.entries(explorer.state()).filter(([k]) => !ofQuestion(k));
		const next = fragment({...Object.fromEntries(kept), ...question});
		if (next === location.hash) ask();
		else location.hash = next;
	};
	// Without a new entry in the history for each turn of the wheel.
	explorer.remember = (part) => history.replaceState(null, '', fragment({...explorer.state(), ...part}));

	async function ask() {
		const state = explorer.state(), number = asked;
		if (!state.name && !state.sql) {
			explorer.stop('query');
			explorer.answer.clear();
			return;
		}
		const given = Object.fromEntries(Object.entries(state).filter(([k]) => ofQuestion(k) && k !== 'show'));
		explorer.answer.clear();
		explorer.answer.state('Asking …');
		try {
			const t = await explorer.ask('query', 'api/query', {db: state.db, ...given});
			if (!t) return;
			explorer.answer.rows(t, state.show || 'table');
		} catch (e) {
			explorer.answer.state(e.message, true);
		}
		at('state').dataset.answered = number;
	}

	function databases(state) {
		const name = (path) => path.replace(/.*\//, '');
		const list = about.databases.map((d, i) => [String(i), name(d.path)]);
		if (list.length > 1) list.push(['all', 'all of them']);
		const db = report.choice('Database ', list, (v) => location.hash = fragment({...explorer.state(), db: v, trace: '', after: '', until: ''}));
		db.select.value = state.db || '0';
		const traces = explorer.objects(about.databases[state.db === 'all' ? 0 : state.db || 0].traces);
		const trace = report.choice('Trace ', traces.map((t) => [String(t.id), `${t.id} ${t.name || ''}`]),
			(v) => location.hash = fragment({...explorer.state(), trace: v, after: '', until: ''}));
		trace.select.value = state.trace || String(traces[0] ? traces[0].id : '');
		at('where').replaceChildren(db.label, trace.label, element('a', {href: `report?db=${state.db === 'all' ? 0 : state.db || 0}`}, 'Report'));
		const t = traces.find((one) => String(one.id) === trace.select.value);
		at('what').textContent = t ? `${t.command || t.name || ''}, ${t.host || ''} ${t.kernel || ''}: ${report.count(t.branches)} branches, ${report.count(t.errors)} errors${t.complete ? '' : ', the recording is cut'}` : '';
		return t;
	}

	function controls() {
		const button = (how, words) => element('button', {type: 'button', 'data-show': how, 'aria-pressed': 'false', onclick: () => {
			explorer.remember({show: how === 'table' ? '' : how});
			explorer.answer.show(how);
		}}, words);
		at('answer-controls').replaceChildren(button('table', 'Table'), button('chart', 'Chart'));
	}

	let shown = {};
	async function route() {
		const state = explorer.state(), t = databases(state), key = `${state.db || 0} ${t ? t.id : ''}`;
		explorer.forms(about, state);
		if (shown.key !== key && t && t.first_ns !== null) await explorer.timeline.start(Number(t.first_ns), Number(t.last_ns), {...state, trace: t.id});
		else if (state.after && state.until) explorer.timeline.show(Number(state.after), Number(state.until));
		shown = {key};
		await ask();
	}

	async function start() {
		controls();
		try {
			about = await explorer.ask('about', 'api/about', {});
			await route();
			window.addEventListener('hashchange', route);
		} catch (e) {
			explorer.answer.state(e.message, true);
		}
		document.body.dataset.ready = 'yes';
	}
	start();
})(window.explorer, window.report);
