// screenshots.js FILE|URL PREFIX - pictures of a page: PREFIX-1400.png, -500, -dark, -print.
'use strict';
const {open} = require('./browser.js');
const looks = [['1400', {width: 1400}], ['500', {width: 500}], ['dark', {width: 1400, colorScheme: 'dark'}], ['print', {width: 800, media: 'print'}]];

(async () => {
	const [, , file, prefix] = process.argv;
	for (const [name, {width, colorScheme, media}] of looks) {
		const {browser, page} = await open({viewport: {width, height: 900}, colorScheme: colorScheme || 'light'});
		await page.goto(file.startsWith('http') ? file : `file://${file}`);
		await page.emulateMedia({media: media || 'screen', colorScheme: colorScheme || 'light'});
		// The flame graph moves for a moment.
		await page.waitForTimeout(1500);
		await page.screenshot({path: `${prefix}-${name}.png`, fullPage: true});
		await browser.close();
	}
})();
