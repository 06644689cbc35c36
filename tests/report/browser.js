// browser.js - Chromium without a window, and nothing but the page's file for it to reach.
'use strict';
const {chromium} = require('playwright-core');
const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
	'--disable-component-update', '--disable-sync'];

exports.open = async (options) => {
	const browser = await chromium.launch({executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: flags});
	const page = await browser.newPage(options);
	return {browser, page};
};
