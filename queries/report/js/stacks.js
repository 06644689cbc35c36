// stacks.js - call stacks as a tree of frames, as pt-query's folded has them: a thread, its functions; a guest's above those of
// its vCPU's thread, where that entered the guest.
(function (report) {
	'use strict';
	// Names of what a guest's thread is below, by the thread.
	function guestThreads(suffix) {
		const by = new Map();
		for (const g of report.objects(`guests${suffix}`)) {
			if (!by.has(g.thread)) by.set(g.thread, []);
			by.get(g.thread).push(g);
		}
		const names = new Map();
		for (const [thread, list] of by) {
			const {machine} = list[0], vcpus = new Set(list.map((g) => g.vcpu));
			names.set(thread, {machine: `[guest ${machine}]`, vcpu: vcpus.size === 1 ? list[0].comm || `[vCPU ${list[0].vcpu}]` :
				`[vCPUs ${[...vcpus].join(', ')} of ${machine}]`});
		}
		return names;
	}

	function framesOf(path, paths) {
		const names = [], way = [];
		for (let p = paths.get(path); p; p = paths.get(p.parent)) way.unshift(p);
		let entered = 0;
		way.forEach((p, i) => {
			names.push(p.name);
			if (p.enters && !entered && i < way.length - 1) entered = i + 1;
		});
		return [names, entered];
	}

	// [{frames, insns, cycles, time, thread, vcpu}]; suffix: of the trace to compare with.
	report.stacks = (suffix, paths) => {
		const threads = new Map(report.objects(`threads${suffix}`).map((t) => [t.id, t]));
		const last = new Map(), guests = guestThreads(suffix);
		for (const t of threads.values()) last.set(t.first, t);
		return report.objects(`stacks${suffix}`).map((s) => {
			const [names, entered] = s.path === null ? [['[smaller stacks]'], 0] : framesOf(s.path, paths), t = last.get(s.thread) || threads.get(s.thread), g = guests.get(s.thread);
			const thread = t ? t.comm || '[thread]' : '[thread]';
			const frames = !g ? [thread, ...names] : entered ? [g.vcpu, ...names.slice(0, entered), g.machine, thread, ...names.slice(entered)] :
				[g.vcpu, g.machine, thread, ...names];
			return {frames, insns: s.insns || 0, cycles: s.cycles || 0, time: s.time || 0,
				thread: t ? `${thread}${t.tid === null ? '' : ` ${t.tid}`}${g ? `, ${g.machine}` : ''}` : thread, vcpu: g ? g.vcpu : null};
		});
	};

	// {name, value, children}, a frame's value with those above it. by: insns, cycles, time.
	report.stackTree = (stacks, by) => {
		const root = {name: 'all', value: 0, children: [], kids: new Map()};
		for (const s of stacks) {
			const v = s[by];
			if (!(v > 0)) continue;
			let node = root;
			node.value += v;
			for (const name of s.frames) {
				let kid = node.kids.get(name);
				if (!kid) {
					kid = {name, value: 0, children: [], kids: new Map()};
					node.kids.set(name, kid);
					node.children.push(kid);
				}
				kid.value += v;
				node = kid;
			}
		}
		return root;
	};

	// Each frame of a gets delta: how much larger its share of a is than b's, in a millionth of the whole.
	report.compareTrees = (a, b) => {
		const walk = (x, y) => {
			x.delta = Math.round(1e6 * (x.value / a.value - (y ? y.value / b.value : 0)));
			for (const kid of x.children) walk(kid, y && y.kids.get(kid.name));
		};
		if (a.value && b.value) walk(a, b);
	};
})(window.report);
