// spans.js - a lane's stretches of time, sorted: which of them a pixel shows, however many there are.
(function (report) {
	'use strict';
	// The first index in a sorted array whose value is not below v.
	report.lowerBound = (array, v, low = 0, high = array.length) => {
		while (low < high) {
			const middle = (low + high) >> 1;
			if (array[middle] < v) low = middle + 1;
			else high = middle;
		}
		return low;
	};

	// Stretches that do not overlap. items: {begin, end, parts: [time of each kind], tag}. covered(kind, a, b) is exact for
	// whole stretches, and by share inside one: sums from the beginning make it quick at any zoom.
	report.Spans = class {
		constructor(items, kinds) {
			items.sort((a, b) => a.begin - b.begin);
			this.n = items.length;
			this.begin = Float64Array.from(items, (i) => i.begin);
			this.end = Float64Array.from(items, (i) => i.end);
			this.tag = items.map((i) => i.tag);
			this.sums = [];
			for (let k = 0; k < kinds; k++) {
				const sum = new Float64Array(this.n + 1);
				items.forEach((item, i) => sum[i + 1] = sum[i] + item.parts[k]);
				this.sums.push(sum);
			}
		}
		part(kind, i) {
			return this.sums[kind][i + 1] - this.sums[kind][i];
		}
		// Time of that kind from the beginning to t.
		until(kind, t) {
			const i = report.lowerBound(this.begin, t) - 1;
			if (i < 0) return 0;
			const length = this.end[i] - this.begin[i];
			const share = length > 0 ? Math.min(1, (t - this.begin[i]) / length) : 1;
			return this.sums[kind][i] + this.part(kind, i) * share;
		}
		covered(kind, a, b) {
			return this.until(kind, b) - this.until(kind, a);
		}
		// The stretch at t, -1: none.
		find(t) {
			const i = report.lowerBound(this.begin, t + 1e-9) - 1;
			return i >= 0 && t <= this.end[i] ? i : -1;
		}
	};
})(window.report);
