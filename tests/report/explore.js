// explore.js URL ACTION... - uses pt-query serve's page as somebody would, and prints what it shows, a line a fact, its words separated by tabs.
'use strict';
const fs = require('fs');
const {open} = require('./browser.js');
const say = (...words) => console.log(words.join('\t'));
const answered = (page) => page.waitForFunction(() => {
	const {asked, answered} = document.getElementById('state').dataset;
	return answered === (asked || '0');
}, null, {timeout: 30000});
const range = (page) => page.$eval('canvas.timeline', (c) => [c.dataset.begin, c.dataset.end]);
// Until the server has answered for what is shown.
const drawn = (page) => page.waitForFunction(() => {
	const d = document.querySelector('canvas.timeline').dataset;
	return d.asked === `${d.begin} ${d.end}`;
}, null, {timeout: 30000});
async function rows(page, name) {
	await answered(page);
	for (const row of await page.$$eval('#rows tbody tr', (all) => all.map((r) => [...r.cells].map((c) => c.classList.contains('null') ? '' : c.title)))) say(name, ...row);
}

const actions = {
	async accessible(page) {
		await page.evaluate(`${fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')};0`);
		const {violations, passes} = await page.evaluate(() => window.axe.run());
		say('axe-passes', passes.length);
		for (const v of violations) say('axe', v.id, v.impact, v.nodes.map((n) => n.html.slice(0, 200)).join(' '));
	},
	// A query of the list, found by a word, asked as it is.
	async query(page) {
		await page.fill('#queries input', 'by reason, with percentiles');
		await page.fill('#queries input', 'vmexit-latency');
		await page.click('#queries li:not([hidden]) button:text-is("vmexit-latency")');
		await page.click('#form button:text-is("Ask")');
		await rows(page, 'query');
		say('query-hash', await page.evaluate(() => location.hash));
	},
	// With a parameter, by its field.
	async parameter(page) {
		await page.fill('#queries input', '');
		await page.click('#queries button:text-is("branches-between")');
		await page.fill('input[name="p.limit"]', '3');
		await page.click('#form button:text-is("Ask")');
		await rows(page, 'parameter');
	},
	async sql(page) {
		await page.click('#queries button:text-is("SQL")');
		await page.fill('textarea', 'SELECT reason_name, count(*) AS exits FROM vmexits GROUP BY 1 ORDER BY 2 DESC, 1');
		await page.keyboard.press('Control+Enter');
		await rows(page, 'sql');
		await page.click('#rows th:first-child button');
		say('sorted', await page.$eval('#rows tbody tr', (r) => r.cells[0].textContent));
	},
	async wrong(page) {
		await page.fill('textarea', 'SELECT no_such_column FROM vmexits');
		await page.keyboard.press('Control+Enter');
		await answered(page);
		say('wrong', await page.textContent('#state'));
		await page.fill('textarea', 'SELECT 9007199254740993 AS exact, -1 AS ip, NULL AS none, 1.5 AS half, \'<b>&"\' AS text');
		await page.keyboard.press('Control+Enter');
		await rows(page, 'exact');
	},
	async chart(page) {
		await page.fill('textarea', 'SELECT time_ns, latency_ns FROM vmexits ORDER BY 1');
		await page.keyboard.press('Control+Enter');
		await answered(page);
		await page.click('button[data-show="chart"]');
		say('chart', await page.$$eval('#rows canvas', (all) => all.length), await page.textContent('#rows .u-legend'));
		say('chart-hash', await page.evaluate(() => location.hash.includes('show=chart')));
		await page.click('button[data-show="table"]');
	},
	// The time line: by wheel, drag and keys; each time what is there is asked anew.
	async zoom(page) {
		await drawn(page);
		const tell = async (how) => {
			await drawn(page);
			say('range', how, ...await range(page), await page.$eval('canvas.timeline', (c) => c.dataset.spans));
		};
		await tell('all');
		const box = await (await page.$('canvas.timeline')).boundingBox();
		await page.mouse.move(box.x + box.width / 2, box.y + 40);
		for (let i = 0; i < 6; i++) await page.mouse.wheel(0, -100);
		await tell('wheel');
		await page.mouse.down();
		await page.mouse.move(box.x + box.width / 2 + 80, box.y + 40, {steps: 4});
		await page.mouse.up();
		await tell('drag');
		await page.focus('canvas.timeline');
		for (const key of ['ArrowRight', '+', '-', 'Home']) {
			await page.keyboard.press(key);
			await tell(key);
		}
	},
	// Down to branches: until nothing shorter is to be had, then the button.
	async deepest(page) {
		await page.focus('canvas.timeline');
		for (let i = 0; i < 60; i++) await page.keyboard.press('+');
		await drawn(page);
		say('deepest', ...await range(page));
		await page.keyboard.press('Home');
		for (let i = 0; i < 13; i++) await page.keyboard.press('+');
		await drawn(page);
		const [from, to] = await range(page);
		await page.click('#time-controls button:text-is("Branches of what is shown")');
		await answered(page);
		say('between', Math.floor(Number(from)), Math.ceil(Number(to)));
		await rows(page, 'branch');
	},
	// A second page with the same address shows the same.
	async link(page) {
		await page.click('#queries button:text-is("SQL")');
		await page.fill('textarea', 'SELECT count(*) AS n FROM vmexits');
		await page.keyboard.press('Control+Enter');
		await answered(page);
		const other = await page.context().browser().newPage();
		await other.goto(page.url());
		await other.waitForSelector('body[data-ready]');
		await rows(other, 'link');
		await other.close();
	},
	async all(page) {
		await page.selectOption('#where select', 'all');
		await page.click('#queries button:text-is("SQL")');
		await page.fill('textarea', 'SELECT count(*) AS branches FROM functions');
		await page.keyboard.press('Control+Enter');
		await rows(page, 'all');
		await page.selectOption('#where select', '0');
	},
	async report(page) {
		await page.click('#where a');
		await page.waitForSelector('#findings li');
		say('report', await page.$$eval('.findings li', (all) => all.length));
	},
	// What the mouse is over, and a click twice on an exit: why it was slow.
	async hover(page) {
		await page.focus('canvas.timeline');
		await page.keyboard.press('Home');
		await drawn(page);
		const box = await (await page.$('canvas.timeline')).boundingBox();
		for (let x = 135; x < box.width; x += 3) {
			await page.mouse.move(box.x + x, box.y + 40);
			const words = await page.textContent('#readout');
			if (/^exit \d+, HLT, /.test(words)) {
				say('hover', words);
				await page.mouse.dblclick(box.x + x, box.y + 40);
				await answered(page);
				say('why', await page.evaluate(() => location.hash), await page.$$eval('#rows tbody tr', (all) => all.length));
				return;
			}
		}
	},
	// The events and interrupts below the first lane, each once.
	async marks(page) {
		await page.focus('canvas.timeline');
		await page.keyboard.press('Home');
		for (let i = 0; i < 4; i++) await page.keyboard.press('+');
		await drawn(page);
		const box = await (await page.$('canvas.timeline')).boundingBox();
		const seen = new Set();
		for (let x = 131; x < box.width; x += 3) {
			await page.mouse.move(box.x + x, box.y + 24 + 34 - 3);
			seen.add(await page.textContent('#readout'));
		}
		for (const words of seen) say('mark', words);
	},
	// The calls below the lanes: all that came, and what is under the mouse in each row of the first thread.
	async calls(page) {
		await page.focus('canvas.timeline');
		await page.keyboard.press('Home');
		for (let i = 0; i < 5; i++) await page.keyboard.press('+');
		await drawn(page);
		say('calls-range', ...await range(page));
		say('calls', await page.$eval('canvas.timeline', (c) => c.dataset.calls), await page.textContent('#calls-note'));
		const box = await (await page.$('canvas.timeline')).boundingBox();
		for (let y = 24 + 2 * 34 + 17 + 7; y < Math.min(box.height, 400); y += 14) {
			await page.mouse.move(box.x + box.width / 2, box.y + y);
			say('call', await page.textContent('#readout'));
		}
		await page.selectOption('#calls-of', 'none');
		const lower = await page.waitForFunction((h) => document.querySelector('canvas.timeline').getBoundingClientRect().height < h, box.height,
			{timeout: 10000}).then(() => true, () => false);
		say('no-calls', await page.textContent('#calls-note'), lower);
		await page.selectOption('#calls-of', '');
	},
	async picture(page) {
		await page.screenshot({path: process.env.PICTURE, fullPage: true});
	},
};

(async () => {
	const [url, ...wanted] = process.argv.slice(2);
	const {browser, page} = await open({viewport: {width: 1400, height: 900}});
	// (That a question failed, which the page says, the console says, too.)
	page.on('console', (m) => m.text().includes('status of 400') || say('console', m.type(), m.text()));
	page.on('pageerror', (e) => say('error', e.message));
	page.on('request', (r) => r.url().startsWith(url) || say('request', r.url().slice(0, 200)));
	await page.addInitScript(() => document.addEventListener('securitypolicyviolation', (e) => console.error(`policy: ${e.violatedDirective}`)));
	await page.goto(url);
	await page.waitForSelector('body[data-ready]');
	for (const name of wanted) await actions[name](page);
	say('done');
	await browser.close();
})().catch((e) => {
	say('error', e.stack);
	process.exit(1);
});
