// server.js FOLDER PORT - the HTTP interface of a ClickHouse server, as far as pt-load and pt-query use it, over the engine of a
// newer ClickHouse than Debian's (chdb, from npm: the engine as a library). Its data is in FOLDER. GET is answered "Ok.".
// Statements run one after another in one session; database and settings are those of each request's URL.
"use strict";
const http = require("http");
const fs = require("fs");
const path = require("path");
const zlib = require("zlib");
const { Session } = require("chdb");

const [folder, port] = process.argv.slice(2);
const session = new Session(path.join(folder, "data"));
const notSettings = new Set(["readonly", "wait_end_of_query", "default_format", "database", "query"]); // of the URL
const quoted = (text) => `'${text.replace(/\\/g, "\\\\").replace(/'/g, "\\'")}'`;

// An INSERT's rows come as a file: a statement of this engine is text.
function statement(sql, rows) {
	const insert = /^(INSERT INTO .*) FORMAT RowBinary\s*$/s.exec(sql);
	if (!insert)
		return sql;
	const file = path.join(folder, "rows");
	fs.writeFileSync(file, rows);
	return `${insert[1]} SELECT * FROM file(${quoted(file)}, 'RowBinary')`;
}

function settings(parameters) {
	const set = { join_use_nulls: "0" }; // a session keeps what a request before set
	for (const [name, value] of parameters)
		if (!notSettings.has(name))
			set[name] = value;
	return Object.entries(set).map(([name, value]) => `SET ${name} = ${/^\d+$/.test(value) ? value : quoted(value)};`);
}

async function answer(request, body) {
	const parameters = new URL(request.url, "http://localhost").searchParams;
	const inUrl = parameters.get("query");
	const rows = request.headers["content-encoding"] === "gzip" ? zlib.gunzipSync(body) : body;
	const sql = statement(inUrl ?? rows.toString(), rows);
	const use = `USE ${"`"}${parameters.get("database") ?? "default"}${"`"};`;
	await session.queryAsync([use, ...settings(parameters)].join(" "));
	return (await session.queryAsync(sql, { format: parameters.get("default_format") ?? "TabSeparated" })).bytes();
}

let last = Promise.resolve();
http.createServer((request, response) => {
	const parts = [];
	request.on("data", (part) => parts.push(part));
	request.on("end", () => {
		if (request.method === "GET") {
			response.end("Ok.\n");
			return;
		}
		last = last.then(() => answer(request, Buffer.concat(parts))).then(
			(bytes) => response.end(bytes),
			(error) => {
				const text = error.message.replace(/^Query failed: /, "");
				response.writeHead(500, { "Content-Type": "text/plain" });
				response.end(text);
			});
	});
}).listen(Number(port), "127.0.0.1");
