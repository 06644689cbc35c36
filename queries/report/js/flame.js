// flame.js - the flame graph: what of it is shown, by what, and searched.
(function (report) {
	'use strict';
	const {element} = report, BY = [['insns', 'instructions'], ['cycles', 'cycles'], ['time', 'elapsed time']];

	function controls(state, stacks, draw) {
		const has = (by) => stacks.some((s) => s[by] > 0), compared = !!document.getElementById('data-stacks-b');
		const set = (key) => (v) => {
			state[key] = v;
			draw();
		};
		const threads = [...new Set(stacks.map((s) => s.thread))].sort(), vcpus = [...new Set(stacks.map((s) => s.vcpu).filter(Boolean))].sort();
		const by = report.choice('By', BY.filter(([k]) => has(k)), set('by'));
		const of = report.choice('Of', [['', 'all threads'], ...vcpus.map((v) => [`v${v}`, `vCPU: ${v}`]), ...threads.map((t) => [`t${t}`, t])], set('of'));
		const shape = report.choice('As', [['', 'flame graph'], ['icicle', 'icicle (root on top)']], set('shape'));
		const search = element('input', {type: 'search', id: 'flame-search', 'aria-label': 'Search functions', placeholder: 'function'});
		search.addEventListener('input', () => state.search(search.value));
		const box = element('div', {class: 'controls'}, by.label, of.label, shape.label, element('label', {}, 'Search', search));
		by.select.id = 'flame-by';
		of.select.id = 'flame-of';
		shape.select.id = 'flame-shape';
		if (compared) {
			const compare = report.choice('Colors', [['', 'functions'], ['compare', 'change from the second database']], set('compare'));
			compare.select.id = 'flame-compare';
			box.append(compare.label);
		}
		box.append(element('button', {type: 'button', onclick: () => state.chart && state.chart.resetZoom()}, 'Whole'));
		return box;
	}

	// More than there: red; less: blue; as much: grey.
	function changeColor(d) {
		const delta = d.data.delta || 0, strength = Math.min(1, Math.abs(delta) / 50000 + (delta ? .15 : 0));
		const other = Math.round(235 - 150 * strength);
		return delta > 0 ? `rgb(245,${other},${other})` : delta < 0 ? `rgb(${other},${other},250)` : 'rgb(225,225,225)';
	}

	report.flame = (trace, paths) => {
		const section = report.section('flame'), stacks = report.stacks('', paths);
		if (!stacks.length) return report.without('flame', 'The trace has no calls.');
		const other = document.getElementById('data-stacks-b') ? report.stacks('-b', report.paths('-b')) : null;
		const box = element('div', {class: 'flame', role: 'region', tabindex: 0, 'aria-label': 'Flame graph: Tab walks through its frames, Enter makes one as wide as all'});
		const readout = element('p', {class: 'readout', role: 'status', id: 'flame-readout'});
		const state = {by: BY.find(([k]) => stacks.some((s) => s[k] > 0))[0], of: '', shape: '', compare: ''};
		const text = (d) => `${d.data.name}: ${state.by === 'time' ? report.time(d.value) : report.count(d.value)} ` +
			`${BY.find(([k]) => k === state.by)[1]}, ${(100 * d.value / state.total).toFixed(2)} %` +
			(state.compare && d.data.delta !== undefined ? `, ${(d.data.delta / 1e4).toFixed(2)} points more than there` : '');
		const wanted = (list) => list.filter((s) => !state.of || (state.of[0] === 'v' ? s.vcpu === state.of.slice(1) : s.thread === state.of.slice(1)));

		function focusable() {
			for (const g of box.querySelectorAll('svg g.frame')) {
				g.setAttribute('tabindex', 0);
				g.setAttribute('role', 'button');
				const d = g.__data__;
				if (d) g.setAttribute('aria-label', text(d));
			}
			for (const svg of box.querySelectorAll('svg')) svg.setAttribute('role', 'group'), svg.setAttribute('aria-label', 'Frames');
		}
		function draw() {
			const tree = report.stackTree(wanted(stacks), state.by);
			if (state.compare) report.compareTrees(tree, report.stackTree(wanted(other), state.by));
			state.total = tree.value;
			state.tree = tree;
			box.replaceChildren();
			const chart = state.chart = window.flamegraph.default().width(Math.max(300, box.clientWidth - 2)).cellHeight(18).minFrameSize(1.5).transitionDuration(0)
				.selfValue(false).inverted(state.shape === 'icicle').sort(true).title('').tooltip(false).label(text)
				.onHover((d) => readout.textContent = text(d.data && d.data.name ? d : d))
				.onClick((d) => {
					readout.textContent = text(d);
					setTimeout(focusable);
				})
				.setSearchHandler((results, sum, total) => readout.textContent = results.length ?
					`${report.count(results.length)} frames match, ${report.count(sum)} of ${report.count(total)}: ${(100 * sum / total).toFixed(2)} %` :
					'No frame matches.');
			if (state.compare) chart.setColorMapper(changeColor);
			d3.select(box).datum(tree).call(chart);
			focusable();
			if (!state.shape) box.scrollTop = box.scrollHeight;
			if (state.term) state.search(state.term);
		}
		state.search = (term) => {
			state.term = term;
			if (term) state.chart.search(term.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
			else {
				state.chart.clear();
				readout.textContent = '';
			}
			setTimeout(focusable);
		};
		box.addEventListener('keydown', (e) => {
			if ((e.key === 'Enter' || e.key === ' ') && e.target.classList.contains('frame')) {
				e.preventDefault();
				e.target.dispatchEvent(new MouseEvent('click', {bubbles: true}));
			}
		});
		box.addEventListener('focusin', (e) => {
			if (e.target.__data__) readout.textContent = text(e.target.__data__);
		});
		const seen = stacks.reduce((n, x) => n + x.insns, 0);
		section.append(controls(state, stacks, draw), readout, box,
			element('p', {class: 'note'}, 'The graph has ', report.value('count', seen), ' of the trace\'s ', report.value('count', trace.insn_count),
				seen < trace.insn_count ? ' instructions: not of all code the thread is known.' : ' instructions.',
				' Small stacks that are not in the file are one frame of their thread, [smaller stacks]. ',
				'Elapsed time counts calls that overlap each time.'));
		report.redraw(draw);
		report.flameState = state;
	};
})(window.report);
