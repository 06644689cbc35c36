// calls.js - call paths: their names and callers; one VM exit's calls as a tree.
(function (report) {
	'use strict';
	// {parent, name, enters, depth} by the path's number. suffix: of the trace to compare with.
	report.paths = (suffix) => {
		const map = new Map(), t = report.table(`paths${suffix || ''}`), {at} = t;
		const entering = new Set(report.objects(`entering${suffix || ''}`).map((r) => r.symbol));
		for (const r of t.rows) map.set(r[at.id], {parent: r[at.parent], name: r[at.name], enters: entering.has(r[at.symbol]), depth: -1});
		const depth = (p) => {
			const way = [];
			while (p && p.depth < 0) way.push(p), p = map.get(p.parent);
			let d = p ? p.depth : -1;
			while (way.length) way.pop().depth = ++d;
		};
		for (const p of map.values()) depth(p);
		return map;
	};

	report.callTree = (paths, exit, rows) => {
		const least = Math.min(...rows.map((r) => paths.get(r.path) ? paths.get(r.path).depth : 0));
		return report.makeTable(`Host calls of exit ${exit}`, [
			['Function', 'code', (r) => {
				const p = paths.get(r.path);
				return p ? '  '.repeat(p.depth - least) + p.name : '[unknown]';
			}],
			['After the exit', 'time', (r) => r.after], ['Took', 'time', (r) => r.length], ['Instructions', 'count', (r) => r.insns],
		], rows, 'tree');
	};
})(window.report);
