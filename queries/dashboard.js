// dashboard.js - what makes the tables of pt-query --format html more than tables. Everything works on the tables' own text.
'use strict';
(function () {
	const cells = (table) => [...table.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent));
	const heads = (table) => [...table.tHead.rows[0].cells].map((c) => c.textContent);
	const svgNode = (name, attributes, parent, text) => {
		const n = document.createElementNS('http://www.w3.org/2000/svg', name);
		for (const k in attributes) n.setAttribute(k, attributes[k]);
		if (text !== undefined) n.textContent = text;
		if (parent) parent.appendChild(n);
		return n;
	};

	// A click on a column's head sorts by it, numbers from the largest.
	function sortable(table) {
		[...table.tHead.rows[0].cells].forEach((th, i) => th.addEventListener('click', () => {
			const body = table.tBodies[0];
			const rows = [...body.rows];
			const numeric = rows.some((r) => r.cells[i].className === 'n');
			const way = th.dataset.sort ? -th.dataset.sort : numeric ? -1 : 1;
			for (const other of table.tHead.rows[0].cells) delete other.dataset.sort;
			th.dataset.sort = way;
			const empty = (r) => r.cells[i].className === 'null';
			rows.sort((a, b) => {
				if (empty(a) || empty(b)) return empty(a) - empty(b);
				const x = a.cells[i].textContent, y = b.cells[i].textContent;
				return way * (numeric ? x - y : x.localeCompare(y));
			});
			body.append(...rows);
		}));
	}

	function percentBars(table) {
		heads(table).forEach((name, i) => {
			if (!/percent$/.test(name)) return;
			for (const row of table.tBodies[0].rows) {
				const v = Math.max(0, Math.min(100, Number(row.cells[i].textContent) || 0));
				row.cells[i].style.background =
					`linear-gradient(to left, #bcd8f5 ${v}%, transparent ${v}%)`;
			}
		});
	}

	// A line for the chosen column over the first one.
	function lineChart(section, table) {
		const names = heads(table), data = cells(table).map((r) => r.map(Number));
		const W = 900, H = 200, L = 90, B = 20;
		const select = document.createElement('select');
		names.slice(1).forEach((n, i) => {
			if (data.some((r) => r[i + 1] > 0)) select.add(new Option(n, i + 1));
		});
		if (!select.options.length || data.length < 2) return;
		const svg = svgNode('svg', {width: W, height: H, class: 'chart'});
		const draw = () => {
			const c = Number(select.value);
			svg.replaceChildren();
			const x0 = data[0][0], x1 = data[data.length - 1][0];
			const top = Math.max(...data.map((r) => r[c] || 0)) || 1;
			const x = (v) => L + (v - x0) / (x1 - x0 || 1) * (W - L - 10);
			const y = (v) => H - B - v / top * (H - B - 10);
			// Where a value is not known the line has a gap.
			let d = '', open = false;
			for (const r of data) {
				const known = !Number.isNaN(r[c]);
				if (known) d += `${open ? 'L' : 'M'}${x(r[0]).toFixed(1)} ${y(r[c]).toFixed(1)}`;
				open = known;
			}
			svgNode('path', {d, fill: 'none', stroke: '#1f6fb5', 'stroke-width': 1.5}, svg);
			svgNode('path', {d: `M${L} 5V${H - B}H${W - 5}`, fill: 'none', stroke: '#999'}, svg);
			svgNode('text', {x: L - 5, y: 14, 'text-anchor': 'end'}, svg, String(top));
			svgNode('text', {x: L - 5, y: H - B, 'text-anchor': 'end'}, svg, '0');
			svgNode('text', {x: L, y: H - 5}, svg, `${names[0]} ${x0}`);
			svgNode('text', {x: W - 8, y: H - 5, 'text-anchor': 'end'}, svg, String(x1));
		};
		select.addEventListener('change', draw);
		draw();
		table.before(select, svg);
	}

	// Rows stack, weight: the root is at the top; a click makes a frame as wide as all.
	function flameGraph(table) {
		const names = heads(table), stack = names.indexOf('stack'), weight = names.length - 1;
		if (stack < 0) return;
		const root = {name: 'all', value: 0, kids: new Map()};
		let depth = 0;
		for (const r of cells(table)) {
			const v = Number(r[weight]);
			if (!(v > 0)) continue;
			let node = root;
			root.value += v;
			const frames = r[stack].split(';');
			depth = Math.max(depth, frames.length);
			for (const f of frames) {
				if (!node.kids.has(f)) node.kids.set(f, {name: f, value: 0, kids: new Map(), up: node});
				node = node.kids.get(f);
				node.value += v;
			}
		}
		if (!root.value) return;
		const box = document.createElement('div');
		box.className = 'flame';
		box.style.height = `${(depth + 1) * 16}px`;
		const hue = (s) => [...s].reduce((h, c) => (h * 31 + c.charCodeAt(0)) % 360, 7);
		const put = (node, level, left, width, focus) => {
			if (width < 0.1) return;
			const d = document.createElement('div');
			d.textContent = node.name;
			d.title = `${node.name}\n${node.value} ${names[weight]}, ` +
				`${(100 * node.value / root.value).toFixed(2)} %`;
			d.style.cssText = `left:${left}%;width:${width}%;top:${level * 16}px;` +
				`background:hsl(${hue(node.name) % 60},80%,72%)`;
			d.addEventListener('click', () => draw(node));
			box.appendChild(d);
			if (!focus) kids(node, level, left, width);
		};
		const kids = (node, level, left, width) => {
			for (const k of [...node.kids.values()].sort((a, b) => a.name < b.name ? -1 : 1)) {
				const w = width * k.value / node.value;
				put(k, level + 1, left, w);
				left += w;
			}
		};
		const draw = (node) => {
			box.replaceChildren();
			const above = [];
			for (let n = node.up; n; n = n.up) above.unshift(n);
			above.forEach((n, i) => put(n, i, 0, 100, true));
			put(node, above.length, 0, 100);
		};
		draw(root);
		table.before(box);
	}

	for (const section of document.querySelectorAll('section')) {
		const link = document.createElement('a'), table = section.querySelector('table');
		link.href = `#${section.id}`;
		link.textContent = section.id;
		document.querySelector('nav').appendChild(link);
		if (!table) {
			link.className = 'none';
			continue;
		}
		sortable(table);
		percentBars(table);
		if (section.dataset.chart === 'lines') lineChart(section, table);
		if (section.id === 'folded') flameGraph(table);
	}
})();
