// ask.js - questions to the server. A newer question of the same kind stops the one before: the server sees that nobody waits for
// it, and stops its statement.
window.explorer = {};
(function (explorer) {
	'use strict';
	const waiting = new Map();

	// ask(kind, path, arguments): the answer, or null when a newer question came; throws what the server says is wrong.
	explorer.ask = async (kind, path, given) => {
		const query = new URLSearchParams();
		for (const [k, v] of Object.entries(given))
			if (v !== undefined && v !== null && v !== '') query.set(k, v);
		if (waiting.has(kind)) waiting.get(kind).abort();
		const control = new AbortController();
		waiting.set(kind, control);
		try {
			const response = await fetch(`${path}?${query}`, {signal: control.signal});
			const text = await response.text();
			if (!response.ok && text[0] !== '{') throw new Error(text || `The server answers ${response.status}.`);
			const answer = JSON.parse(text);
			if (answer.error) throw new Error(answer.error);
			return answer;
		} catch (e) {
			if (e.name === 'AbortError') return null;
			throw e instanceof TypeError ? new Error('The server does not answer: has pt-query ended?') : e;
		} finally {
			if (waiting.get(kind) === control) waiting.delete(kind);
		}
	};
	explorer.stop = (kind) => waiting.has(kind) && waiting.get(kind).abort();
	explorer.objects = (t) => t.rows.map((r) => Object.fromEntries(t.columns.map((c, i) => [c, r[i]])));
})(window.explorer);
