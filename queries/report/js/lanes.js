// lanes.js - the rows of the time line, from the page's data: vCPUs, CPUs, threads with their calls, losses.
(function (report) {
	'use strict';
	const MOST_THREADS = 12;

	// One lane a vCPU: its time in the guest, and in exits as kernel, user space and off the CPU. What nothing says is a gap.
	function vcpuLanes(exits, reasons) {
		const machines = new Map(report.objects('machines').map((m) => [m.id, m.name]));
		const names = new Map(reasons.map((r) => [r.reason, r.name])), by = new Map();
		for (let i = 0; i < exits.n; i++) {
			const key = `${machines.get(exits.machine[i])} vCPU ${Number.isNaN(exits.vcpu[i]) ? '?' : exits.vcpu[i]}`;
			if (!by.has(key)) by.set(key, []);
			const items = by.get(key), time = exits.time[i], latency = exits.latency[i], inside = exits.inside[i];
			if (inside > 0) items.push({begin: time - inside, end: time, parts: [inside, 0, 0, 0], tag: 'in the guest'});
			if (latency >= 0) {
				const off = exits.off_cpu[i] || 0, user = exits.userspace[i] || 0;
				items.push({begin: time, end: time + latency, parts: [0, Math.max(0, latency - off - user), user, off],
					tag: `exit ${exits.id[i]}, ${names.get(exits.reason[i]) || 'unknown reason'}`, exit: exits.id[i]});
			}
		}
		return [...by].sort((a, b) => a[0].localeCompare(b[0], 'en', {numeric: true})).map(([name, items]) => ({
			name, kind: 'shares', height: 30, colors: ['guest', 'kernel', 'user', 'off'],
			parts: ['guest', 'host kernel', 'VM process', 'off the CPU'], spans: new report.Spans(items, 4)}));
	}

	function marksOf(marks, cpu) {
		return marks.filter((m) => m.cpu === cpu).sort((a, b) => a.time - b.time);
	}

	function cpuLanes(threads, running, marks, losses) {
		const by = new Map();
		for (const r of running) {
			if (!by.has(r.cpu)) by.set(r.cpu, []);
			const t = threads.get(r.thread);
			by.get(r.cpu).push({begin: r.time, end: r.time + r.length, parts: [r.length],
				tag: t ? `${t.comm || '[thread]'} ${t.tid === null ? '' : t.tid}` : '[thread not known]'});
		}
		for (const m of [...marks, ...losses]) if (!by.has(m.cpu)) by.set(m.cpu, []);
		return [...by].sort((a, b) => a[0] - b[0]).map(([cpu, items]) => {
			const mine = marksOf(marks, cpu);
			return {name: cpu === null ? 'CPU not known' : `CPU ${cpu}`, kind: 'shares', height: 26, colors: ['thread'], parts: ['running'],
				labels: true, spans: new report.Spans(items, 1), marks: mine, markTimes: Float64Array.from(mine, (m) => m.time),
				losses: losses.filter((l) => l.cpu === cpu || l.cpu === null)};
		});
	}

	// A lane a thread: a row for each depth of its calls.
	function threadLanes(threads, paths, calls) {
		const by = new Map(), {at} = calls;
		let time = 0, last;
		for (const r of calls.rows) {
			if (r[at.thread] !== last) time = 0, last = r[at.thread];
			time += r[at.after];
			if (!by.has(last)) by.set(last, []);
			by.get(last).push({time, length: r[at.length], path: r[at.path], insns: r[at.insns]});
		}
		const total = (list) => list.reduce((s, c) => s + c.insns, 0);
		const lanes = [...by].sort((a, b) => total(b[1]) - total(a[1]));
		report.threadsLeftOut = Math.max(0, lanes.length - MOST_THREADS);
		return lanes.slice(0, MOST_THREADS).map(([id, list]) => {
			const depth = (c) => paths.get(c.path) ? paths.get(c.path).depth : 0;
			const least = list.reduce((m, c) => Math.min(m, depth(c)), Infinity), rows = [];
			for (const c of list) (rows[depth(c) - least] = rows[depth(c) - least] || []).push(c);
			const t = threads.get(id);
			return {name: t ? `${t.comm || '[thread]'} ${t.tid === null ? '' : t.tid}` : '[thread not known]', kind: 'calls', rowHeight: 14,
				rows: Array.from(rows, (row) => row ? {calls: row, begin: Float64Array.from(row, (c) => c.time),
					ends: row.reduce((a, c) => (a.push(Math.max(a.length ? a[a.length - 1] : 0, c.time + c.length)), a), [])} :
					{calls: [], begin: new Float64Array(0), ends: []})};
		});
	}

	report.lanes = (exits, paths) => {
		const threads = new Map(report.objects('threads').map((t) => [t.id, t]));
		const marks = report.objects('marks'), losses = report.objects('losses').filter((l) => l.time !== null);
		return [...vcpuLanes(exits, report.objects('reasons')),
			...cpuLanes(threads, report.objects('running'), marks, losses),
			...threadLanes(threads, paths, report.table('calls'))];
	};
})(window.report);
