// speedscope.js FOLDER FILE - the speedscope whose release is in FOLDER opens FILE: prints the rows of its table of functions (name, total,
// own), separated by tabs.
'use strict';
const fs = require('fs'), http = require('http'), path = require('path');
const {open} = require('./browser.js');
const types = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json'};
const [, , folder, file] = process.argv;

function serve(request, response) {
	const name = new URL(request.url, 'http://x').pathname, from = name === '/profile.json' ? file : path.join(folder, path.basename(name));
	if (!fs.existsSync(from)) {
		response.writeHead(404).end();
		return;
	}
	response.writeHead(200, {'Content-Type': types[path.extname(from)] || 'application/octet-stream'});
	fs.createReadStream(from).pipe(response);
}

const server = http.createServer(serve).listen(0, '127.0.0.1', async () => {
	const at = `http://127.0.0.1:${server.address().port}`;
	const {browser, page} = await open({viewport: {width: 1400, height: 3000}});
	let status = 1;
	try {
		page.on('pageerror', (e) => console.log(`error\t${e.message}`));
		await page.goto(`${at}/index.html#profileURL=${encodeURIComponent(`${at}/profile.json`)}`);
		await page.waitForFunction(() => /Sandwich/.test(document.body.textContent) && !/Importing|Loading/.test(document.body.textContent), null, {timeout: 60000});
		await page.getByText('Sandwich').click();
		await page.waitForSelector('table tr');
		for (const row of await page.$$eval('table tr', (all) => all.map((r) => [...r.cells].map((c) => c.textContent)))) console.log(['row', ...row].join('\t'));
		if (process.env.PICTURE) await page.screenshot({path: process.env.PICTURE});
		console.log('done');
		status = 0;
	} catch (e) {
		console.log(`error\t${e.message}`);
	}
	await browser.close();
	process.exit(status);
});
