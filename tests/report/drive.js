// drive.js FILE ACTION... - uses a report as somebody would, and prints what it shows, a line a fact, its words separated by tabs.
'use strict';
const fs = require('fs');
const {open} = require('./browser.js');
const say = (...words) => console.log(words.join('\t'));
// The exact values of a row: those of <data>, else the text.
const rowsOf = (page, selector) => page.$$eval(`${selector} tbody tr`, (rows) => rows.map((r) => [...r.cells].map((c) => {
	const d = c.querySelector('data');
	return d ? d.value : c.classList.contains('null') ? '' : c.textContent;
})));
const settle = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));
// The two ends of what the time line shows.
const range = (page) => page.evaluate(() => [report.view.begin, report.view.end]);

const actions = {
	async accessible(page) {
		await page.evaluate(`${fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')};0`);
		await page.click('#tables summary');
		const {violations, passes} = await page.evaluate(() => window.axe.run());
		say('axe-passes', passes.length);
		for (const v of violations) say('axe', v.id, v.impact, v.nodes.map((n) => n.html.slice(0, 200)).join(' '));
		await page.click('#tables summary');
	},
	async findings(page) {
		for (const text of await page.$$eval('.findings li', (all) => all.map((l) => l.textContent))) say('finding', text);
		for (const [name, v] of await page.$$eval('.facts div', (all) => all.map((d) => [d.querySelector('dt').textContent,
			d.querySelector('data').value]))) say('fact', name, v);
	},
	async reasons(page) {
		for (const row of await rowsOf(page, '#latency table')) say('reason', ...row);
	},
	// Each reason, each bar by the arrow keys, the exits of each.
	async bars(page) {
		for (const button of await page.$$('button[data-reason]')) {
			const name = await button.textContent();
			await button.click();
			if (!await page.$('#bars')) continue;
			await page.focus('#bars');
			let last = '';
			for (;;) {
				await page.keyboard.press('ArrowRight');
				const heading = await page.textContent('#exits-of-bar h3');
				if (heading === last) break;
				last = heading;
				const [n, from, to] = await page.$$eval('#exits-of-bar h3 data', (all) => all.map((d) => d.value));
				say('bar', name, n, from, to);
				for (const row of await rowsOf(page, '#exits-of-bar')) say('exit', name, row[0], row[1]);
			}
		}
	},
	// A click into the highest bar, then on its first exit, then to the time line.
	async click(page) {
		await page.click('button[data-reason]');
		const bar = await page.evaluate(() => {
			const over = document.getElementById('bars');
			return {width: over.clientWidth, height: over.clientHeight};
		});
		for (let x = 5; x < bar.width; x += 10) {
			await page.hover('#bars', {position: {x, y: bar.height - 4}});
			await page.mouse.down();
			await page.mouse.up();
			if (await page.$('#exits-of-bar button[data-exit]')) break;
		}
		const first = await page.$('#exits-of-bar button[data-exit]'), id = await first.textContent();
		say('clicked', id);
		await first.click();
		for (const row of await rowsOf(page, '#exit-tree')) say('call', id, row[0].trim(), ...row.slice(1));
		await page.click('#exit-tree h3 + button');
		await settle(page);
		say('shown', id, ...await range(page));
		const box = await (await page.$('.timeline')).boundingBox();
		const lanes = await page.evaluate(() => report.timelineLanes.filter((l) => l.parts && l.parts.length > 1).map((l) => l.top));
		for (const top of lanes) {
			await page.mouse.move(box.x + box.width / 2, box.y + top + 30);
			say('under', id, await page.textContent('#readout'));
		}
	},
	async move(page) {
		const all = await range(page), box = await (await page.$('.timeline')).boundingBox(), at = [box.x + box.width / 2, box.y + 40];
		say('range', 'all', ...all);
		await page.locator('#over-time').scrollIntoViewIfNeeded();
		const now = await (await page.$('.timeline')).boundingBox();
		at[0] = now.x + now.width / 2;
		at[1] = now.y + 40;
		await page.mouse.move(...at);
		await page.mouse.wheel(0, -300);
		await settle(page);
		const wheeled = await range(page);
		say('range', 'wheel', ...wheeled);
		await page.mouse.down();
		await page.mouse.move(at[0] + now.width / 4, at[1], {steps: 4});
		await page.mouse.up();
		await settle(page);
		say('range', 'drag', ...await range(page));
		await page.focus('.timeline');
		for (const key of ['ArrowRight', '+', '-', 'Home']) {
			await page.keyboard.press(key);
			await settle(page);
			say('range', key, ...await range(page));
		}
	},
	async frames(page) {
		for (const by of await page.$$eval('#flame-by option', (all) => all.map((o) => o.value))) {
			await page.selectOption('#flame-by', by);
			say('total', by, await page.evaluate(() => report.flameState.tree.value));
		}
		await page.selectOption('#flame-by', 'insns');
		for (const shape of ['icicle', '']) {
			await page.selectOption('#flame-shape', shape);
			await page.waitForTimeout(900);
			const y = await page.$$eval('#flame g.frame', (all) => all.map((g) => [g.__data__.depth, g.getBoundingClientRect().top]));
			say('root', shape || 'flame', y.find(([d]) => d === 0)[1] < y.find(([d]) => d === 1)[1] ? 'above' : 'below');
		}
		const frame = await page.$('#flame g.frame:nth-of-type(3)');
		await frame.focus();
		say('frame', await page.textContent('#flame-readout'));
	},
	async search(page) {
		await page.mouse.move(0, 0);
		await page.fill('#flame-search', process.env.TERM_WANTED);
		await settle(page);
		say('search', await page.textContent('#flame-readout'));
		await page.fill('#flame-search', '');
	},
	async threads(page) {
		for (const by of await page.$$eval('#flame-by option', (all) => all.map((o) => o.value))) {
			await page.selectOption('#flame-by', by);
			for (const of of await page.$$eval('#flame-of option', (all) => all.map((o) => o.value))) {
				await page.selectOption('#flame-of', of);
				say('of', by, of, await page.evaluate(() => report.flameState.tree.value));
			}
			await page.selectOption('#flame-of', '');
		}
		await page.selectOption('#flame-by', 'insns');
	},
	// What the lines are drawn of: at, for how long, instructions, cycles; and a point of the line of each chart.
	async counters(page) {
		const rows = await page.evaluate(() => report.objects('counters'));
		const {x, rate, ipc} = await page.evaluate(() => report.counterData), known = new Map(x.map((v, i) => [v, [rate[i], ipc[i]]]));
		for (const r of rows) say('counter', r.time, r.length, r.insns, r.cycles, ...known.get(r.time), r.timed);
	},
	// An exit by its number, and one that is not there.
	async find(page) {
		for (const id of process.env.EXITS_WANTED.split(' ')) {
			await page.fill('#exit-wanted', id);
			await page.press('#exit-wanted', 'Enter');
			await settle(page);
			say('found', id, await page.textContent('#exit-answer') || await page.textContent('#exit-tree h3'));
		}
	},
	async compare(page) {
		await page.selectOption('#flame-compare', 'compare');
		const colors = await page.$$eval('#flame g.frame rect', (all) => all.map((r) => r.getAttribute('fill')));
		say('colors', new Set(colors).size);
		const kids = await page.evaluate(() => report.flameState.tree.children.map((k) => [k.name, k.delta]));
		for (const [name, delta] of kids) say('delta', name, delta);
	},
	async functions(page) {
		for (const row of await rowsOf(page, '#functions > .scroll')) say('function', ...row);
		await page.click('#functions button[aria-pressed]');
		const name = await page.textContent('#functions button[aria-pressed="true"]');
		for (const row of await rowsOf(page, '#annotated')) say('insn', name, row[0], row[1]);
	},
	async losses(page) {
		for (const row of await rowsOf(page, '#losses .scroll:first-of-type')) say('loss', ...row.slice(0, 5));
	},
	// The head of a table sorts it, by Enter.
	async sort(page) {
		await page.focus('#functions th:nth-child(2) button');
		await page.keyboard.press('Enter');
		await page.keyboard.press('Enter');
		const values = (await rowsOf(page, '#functions > .scroll')).map((r) => Number(r[1]));
		say('sorted', values.every((v, i) => !i || v >= values[i - 1]) ? 'ascending' : 'not');
	},
	// 60 steps of the wheel, in and out, each drawn: how long the median one took, in ms.
	async fluid(page) {
		const times = await page.evaluate(async () => {
			const canvas = document.querySelector('.timeline'), all = [];
			for (let i = 0; i < 60; i++) {
				const {left} = canvas.getBoundingClientRect(), begin = performance.now();
				canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: i < 40 ? -60 : 60, clientX: left + 300, clientY: 100, cancelable: true}));
				await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
				all.push(performance.now() - begin);
			}
			return all.sort((a, b) => a - b);
		});
		say('median-ms', Math.round(times[30]));
	},
	async narrow(page) {
		await page.setViewportSize({width: 500, height: 900});
		await settle(page);
		say('width', await page.evaluate(() => document.documentElement.scrollWidth));
	},
};

(async () => {
	const {browser, page} = await open({viewport: {width: 1400, height: 900}});
	page.on('console', (m) => say('console', m.type(), m.text()));
	page.on('pageerror', (e) => say('error', e.message));
	page.on('request', (r) => r.url().startsWith('file:') || say('request', r.url().slice(0, 200)));
	await page.addInitScript(() => document.addEventListener('securitypolicyviolation', (e) => console.error(`policy: ${e.violatedDirective}`)));
	await page.goto(`file://${process.argv[2]}`);
	for (const name of process.argv.slice(3)) await actions[name](page);
	say('done');
	await browser.close();
})().catch((e) => {
	say('error', e.stack);
	process.exit(1);
});
