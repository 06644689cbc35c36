#!/usr/bin/env bash
# tests/bench/database.sh [-q] - part of `make bench`: pt-load against a loop of prepared INSERTs of the same
# branches, in one run, and against CREATE INDEX by from_ip and by to_ip on the loop's rows; the size of the
# database of each input; calls as a Perfetto trace against sqlite3's CSV; then every canned query on 10 M
# branches, and on as many with 100,000 VM exits. CPU seconds, medians of RUNS (3), CREATE INDEX once.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
bin=${PT_BIN:-$PWD} build=${PT_BUILD:-$PWD/build} inputs=${PT_SHARED:-$PWD/../shared}/bench
runs=${RUNS:-3}
[ "${1:-}" != -q ] || runs=1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# cpu COMMAND...: its CPU seconds; what it prints goes to $tmp/out
cpu() { "$build/tests/bench/cputime" "$@" 3>&1 >"$tmp/out" 2>"$tmp/err" | awk '{ print $1 }'; }
# median COMMAND...: of RUNS
median() {
	for ((i = 0; i < runs; i++)); do cpu "$@"; done | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# What pt-load has instead of indexes, the chunks of paths and runs, cannot be separated from the rest of it
# by a clock; all of it takes longer, so that the ratio of CREATE INDEX to that is one that the indexes have
# at least.
printf 'pt-load against a loop of prepared INSERTs of the same branches (target: 10 times), and CREATE INDEX for from_ip and to_ip of its rows
against all of pt-load (target: 3 times what makes them findable)\n%-8s %12s %8s %8s %6s %9s %9s %8s %7s\n' input branches \
	'INSERT s' pt-load ratio 'bytes/br' INSERT 'INDEX s' ratio
"$build/tests/tools/mkrecords" --runs 770000 --paths 20000 --calls 20000 --events 1000 2>/dev/null >"$tmp/made-up"
if [ -d "$inputs" ]; then
	zstd -dq "$inputs/lua.img.zst" -o "$tmp/lua.img" && cp "$inputs/lua.maps" "$tmp"
	for v in dflt cyc; do
		zstd -dqf "$inputs/lua.$v.aux.zst" -o "$tmp/aux"
		"$bin/pt-capture" import --raw "$tmp/aux" --maps "$tmp/lua.maps" --mtc-freq 3 --tsc-ratio 160/2 --nom-freq 20 |
			"$bin/pt-decode" -q >"$tmp/lua-$v"
	done
fi
for s in made-up lua-dflt lua-cyc; do
	[ -e "$tmp/$s" ] || continue
	# Interleaved, so that both see the same machine.
	rm -f "$tmp/ours" "$tmp/loop"
	for ((i = 0; i < runs; i++)); do
		rm -f "$tmp/db" "$tmp/db2"
		cpu "$bin/pt-load" -q "$tmp/db" "$tmp/$s" >>"$tmp/ours"
		cpu "$build/tests/bench/insert_loop" "$tmp/$s" "$tmp/db2" >>"$tmp/loop"
	done
	rows=$(awk '$1 == "rows" { print $2 }' "$tmp/out")
	bytes=$(stat -c %s "$tmp/db2")
	index=$(cpu sqlite3 "$tmp/db2" 'PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;
		CREATE INDEX branch_by_from ON branch (from_ip); CREATE INDEX branch_by_to ON branch (to_ip);')
	paste <(sort -g "$tmp/ours") <(sort -g "$tmp/loop") | awk -v n="$s" -v rows="$rows" -v b="$(stat -c %s "$tmp/db")" \
		-v l="$bytes" -v x="$index" '{ o[NR] = $1; i[NR] = $2 } END { m = int((NR + 1) / 2)
		printf "%-8s %12d %8.2f %8.2f %6.1f %9.2f %9.2f %8.2f %7.1f\n", n, rows, i[m], o[m], i[m] / o[m], b / rows, l / rows, x, x / o[m] }'
	rm -f "$tmp/db2"
done

if [ -d "$inputs" ]; then
	printf '\nThe database of each input, indexes and calls included (target: 1 byte a taken branch, 3 with CYC)\n%-10s %10s %8s %9s\n' \
		input branches pt-load bytes/br
	for p in gzip lua cc1 sqlite; do
		zstd -dqf "$inputs/$p.img.zst" -o "$tmp/$p.img" && cp -f "$inputs/$p.maps" "$tmp"
		for v in dflt cyc; do
			zstd -dqf "$inputs/$p.$v.aux.zst" -o "$tmp/aux"
			"$bin/pt-capture" import --raw "$tmp/aux" --maps "$tmp/$p.maps" --mtc-freq 3 --tsc-ratio 160/2 --nom-freq 20 2>"$tmp/err" |
				"$bin/pt-decode" -q >"$tmp/stream"
			rm -f "$tmp/db"
			seconds=$(cpu "$bin/pt-load" -q "$tmp/db" "$tmp/stream")
			rows=$(sqlite3 "$tmp/db" 'SELECT sum(branches) FROM traces')
			awk -v n="$p-$v" -v rows="$rows" -v s="$seconds" -v b="$(stat -c %s "$tmp/db")" -v v=$v \
				'BEGIN { most = v == "cyc" ? 3 : 1
				printf "%-10s %10d %8.2f %9.2f%s\n", n, rows, s, b / rows, (b / rows > most) ? "  over " most : "" }'
		done
	done
	rm -f "$tmp/stream" "$tmp/db"

	printf '\npt-query -f perfetto against sqlite3 writing the view call as CSV (target: 10^6 calls a second)\n%-10s %10s %8s %9s %10s %6s\n' \
		input calls CSV perfetto calls/s ratio
	for v in dflt cyc; do
		"$bin/pt-load" -q "$tmp/db" "$tmp/lua-$v"
		# A raw recording does not say how TSC and time relate: 1.6 GHz.
		sqlite3 "$tmp/db" 'UPDATE trace SET time_zero = 0, time_shift = 31, time_mult = 1342177280'
		calls=$(sqlite3 "$tmp/db" 'SELECT sum(calls) FROM trace')
		awk -v n="lua-$v" -v calls="$calls" -v c="$(median sqlite3 -csv "$tmp/db" 'SELECT * FROM call')" \
			-v p="$(median "$bin/pt-query" "$tmp/db" -f perfetto -o "$tmp/trace")" \
			'BEGIN { printf "%-10s %10d %8.2f %9.2f %10d %6.1f%s\n", n, calls, c, p, calls / p, c / p, calls / p < 1e6 ? "  below 10^6" : "" }'
		rm -f "$tmp/db" "$tmp/trace"
	done
fi

printf '\nQueries on 10 M branches and more (target: 0.5 s each)\n'
"$build/tests/tools/mkvmrecords" --exits 100000 2>/dev/null >"$tmp/vm"
rm -f "$tmp/db"
"$bin/pt-load" -q "$tmp/db" "$tmp/made-up" 2>/dev/null
"$bin/pt-load" -q "$tmp/vm.db" "$tmp/vm"
printf '%-22s %8s %8s\n' query program VM
"$bin/pt-query" "$tmp/db" | awk 'NF == 0 { exit } { print $1 }' | while read -r q; do
	printf '%-22s %8.3f %8.3f\n' "$q" "$(median "$bin/pt-query" "$tmp/db" "$q")" "$(median "$bin/pt-query" "$tmp/vm.db" "$q")"
done | awk '{ print $0 ($2 > 0.5 || $3 > 0.5 ? "  over 0.5 s" : "") }'
