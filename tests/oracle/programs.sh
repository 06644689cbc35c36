# Real programs through the whole pipeline: what pt-decode lists, and what the database holds, are exactly the
# branches that the step engine saw, thread by thread.
# timeout: 600
source tests/common.bash
source tests/programs.bash

# pipeline NAME OPTIONS...: captures, decodes, compares
pipeline() {
	capture "$@" || return
	"$PT_BIN/pt-decode" --text -F tid,from,to "$tmp/c.ptc" >"$tmp/text" 2>"$tmp/err"
	succeeded $? "$*: pt-decode: exit status $?: $(head -n 2 "$tmp/err" "$tmp/text")"
	sort -s -n -k1,1 "$tmp/text" >"$tmp/got"
	same "$*" "$tmp/expected" "$tmp/got"
	check "$*: nothing traced" test -s "$tmp/expected"
}
database() {
	rm -f "$tmp/db"
	"$PT_BIN/pt-decode" -q "$tmp/c.ptc" | "$PT_BIN/pt-load" -q "$tmp/db" || fail "$*: load"
	sqlite3 -separator ' ' "$tmp/db" "SELECT tid, printf('%x', from_ip), printf('%x', to_ip) FROM branches ORDER BY tid, id" \
		>"$tmp/got"
	same "$* in the database" "$tmp/expected" "$tmp/got"
	check "$*: integrity" test "$(sqlite3 "$tmp/db" 'PRAGMA integrity_check')" = ok
	check "$*: errors in the database" test "$(sqlite3 "$tmp/db" 'SELECT count(*) FROM errors')" = 0
}
for name in $(programs); do
	pipeline "$name" && database "$name"
done
for terms in cyc cyc,noretcomp noretcomp psb_period=0 mtc=0 tsc=0 tsc=0,mtc=0 mtc_period=0,cyc,cyc_thresh=4 psb_period=0,cyc; do
	for name in indirect signals threads; do
		pipeline "$name" -e "$terms"
	done
done
