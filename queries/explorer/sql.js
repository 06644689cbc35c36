// sql.js - the list of queries, a form for one's parameters, and the SQL box with the views beside it.
(function (explorer, report) {
	'use strict';
	const {element} = report;
	const at = (id) => document.getElementById(id);

	// "function = the one with the most instructions; a name"
	const parameter = (line) => {
		const [, name, note] = /^(\S+)\s*=?\s*(.*)$/.exec(line);
		return {name, note};
	};

	function queryForm(query, given) {
		const fields = query.parameters.map(parameter).map(({name, note}) => element('label', {class: 'parameter'}, element('span', {}, name),
			element('input', {name: `p.${name}`, value: given[`p.${name}`] || '', autocomplete: 'off', spellcheck: 'false'}), element('small', {class: 'dim'}, note)));
		return element('form', {onsubmit: (e) => {
			e.preventDefault();
			const filled = [...new FormData(e.target)].filter(([, v]) => v !== '');
			explorer.go({name: query.name, ...Object.fromEntries(filled)});
		}}, element('p', {}, element('strong', {}, query.name), `: ${query.title}`), ...fields, element('button', {}, 'Ask'));
	}

	function schema(views, box) {
		const insert = (text) => {
			box.setRangeText(text, box.selectionStart, box.selectionEnd, 'end');
			box.focus();
		};
		return element('div', {class: 'schema'}, ...[...views].map(([view, columns]) => element('details', {}, element('summary', {}, view),
			element('p', {}, ...columns.map((c) => element('button', {type: 'button', onclick: () => insert(c)}, c))))));
	}

	function sqlForm(about, given) {
		const views = new Map(), box = element('textarea', {name: 'sql', 'aria-label': 'SQL', spellcheck: 'false'});
		for (const [view, column] of about.databases[explorer.state().db === 'all' ? 0 : explorer.state().db || 0].schema.rows)
			views.set(view, [...views.get(view) || [], column]);
		box.value = given.sql || 'SELECT reason_name, count(*) AS exits, sum(latency_ns) AS total_ns\nFROM vmexits GROUP BY 1 ORDER BY 3 DESC';
		const ask = () => explorer.go({sql: box.value});
		box.addEventListener('keydown', (e) => {
			if (e.key !== 'Enter' || !(e.ctrlKey || e.metaKey)) return;
			e.preventDefault();
			ask();
		});
		return element('form', {onsubmit: (e) => {
			e.preventDefault();
			ask();
		}}, box, element('button', {}, 'Ask'), element('small', {class: 'dim'}, ' Ctrl+Enter. One statement that reads; the views are:'), schema(views, box));
	}

	explorer.forms = (about, given) => {
		const find = element('input', {type: 'search', placeholder: 'Find a query', 'aria-label': 'Find a query'});
		const own = {name: '', title: 'your own SQL'};
		const list = element('ul', {}, ...[own, ...about.queries].map((q) => element('li', {'data-text': `${q.name} ${q.title}`.toLowerCase()},
			element('button', {type: 'button', title: q.title, 'aria-current': String((given.name || '') === q.name), onclick: () => {
				for (const b of list.querySelectorAll('button')) b.setAttribute('aria-current', String(b === document.activeElement));
				at('form').replaceChildren(q.name ? queryForm(q, {}) : sqlForm(about, {}));
			}}, q.name || 'SQL'))));
		find.addEventListener('input', () => {
			for (const item of list.children) item.hidden = !item.dataset.text.includes(find.value.toLowerCase());
		});
		at('queries').replaceChildren(find, list);
		const query = about.queries.find((q) => q.name === given.name);
		at('form').replaceChildren(query ? queryForm(query, given) : sqlForm(about, given));
	};
})(window.explorer, window.report);
