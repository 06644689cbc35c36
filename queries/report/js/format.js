// format.js - what the pictures share: the page's data, numbers to be read, elements.
window.report = {};
(function (report) {
	'use strict';
	const counts = new Intl.NumberFormat('en-US', {maximumFractionDigits: 20});
	const short = new Intl.NumberFormat('en-US', {maximumSignificantDigits: 4});

	// The rows of an element, and where its columns are.
	report.table = (name) => {
		const element = document.getElementById(`data-${name}`);
		if (!element) return {columns: [], rows: [], at: {}};
		const t = JSON.parse(element.textContent);
		t.at = Object.fromEntries(t.columns.map((c, i) => [c, i]));
		return t;
	};
	report.json = (name) => JSON.parse(document.getElementById(`data-${name}`).textContent);
	report.objects = (name) => {
		const t = report.table(name);
		return t.rows.map((r) => Object.fromEntries(t.columns.map((c, i) => [c, r[i]])));
	};

	report.count = (n) => counts.format(n);
	const scaled = (v, steps) => {
		const [by, unit] = steps.find(([s]) => Math.abs(v) >= s) || steps[steps.length - 1];
		return `${short.format(v / by)} ${unit}`;
	};
	const ns = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
	report.unit = 'ns';
	// A time in the report's unit.
	report.time = (v) => report.unit === 'ns' ? scaled(v, ns) : `${counts.format(Math.round(v))} ticks`;
	const texts = {
		ns: [(v) => scaled(v, ns), (v) => `${counts.format(v)} ns`],
		ticks: [(v) => `${counts.format(v)} ticks`, (v) => `${counts.format(v)} ticks`],
		count: [(v) => counts.format(v), (v) => counts.format(v)],
		percent: [(v) => `${short.format(v)} %`, (v) => `${v} %`],
		ratio: [(v) => short.format(v), (v) => String(v)],
	};
	// An element that shows a value to be read, and says exactly what it is.
	report.value = (unit, v) => {
		const [shown, exact] = texts[unit === 'time' ? report.unit : unit];
		if (v === null || v === undefined) return report.element('span', {class: 'dim', title: 'not known'}, '–');
		return report.element('data', {value: v, title: exact(v)}, shown(v));
	};

	// element(tag, attributes, children...): those are elements or texts.
	report.element = (tag, attributes, ...children) => {
		const e = document.createElement(tag);
		for (const [k, v] of Object.entries(attributes || {}))
			if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
			else if (v !== undefined && v !== null) e.setAttribute(k, v);
		e.append(...children);
		return e;
	};
	report.section = (id) => document.getElementById(id);
	// A part that the trace has nothing for says so.
	report.without = (id, why) => report.section(id).append(report.element('p', {class: 'note none'}, why));
	report.color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
	// Calls draw now, and whenever colors or the width are other ones.
	report.redraw = (draw) => {
		draw();
		matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
		matchMedia('print').addEventListener('change', draw);
		let width = innerWidth;
		window.addEventListener('resize', () => {
			if (innerWidth !== width) draw();
			width = innerWidth;
		});
	};
	report.choice = (label, options, onchange) => {
		const select = report.element('select', {});
		for (const [value, text] of options) select.add(new Option(text, value));
		select.addEventListener('change', () => onchange(select.value));
		return {label: report.element('label', {}, label, select), select};
	};
})(window.report);
