#!/usr/bin/env bash
# pt-capture in its own recording of whole CPUs: it is left out, how much it was is said, and every branch of all others is there as
# with it.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
workload
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
pt-capture -o self.ptc -m 1M,32M -e psb_period=1 -a -- work 1 2>self.err || exit 1
EOS
box -c 2
pieces "with it" 2 "$out/self.ptc" uk
"$PT_BIN/pt-capture" info "$out/self.ptc" | sed -n 's/^recorder\.\([0-9]*\): .*/\1/p' >"$tmp/pids"
check "two processes: $(tr '\n' ' ' <"$tmp/pids")" test "$(wc -l <"$tmp/pids")" -eq 2
"$PT_BIN/pt-decode" --include-self --text -F pid,tid,cpu,from,to "$out/self.ptc" 2>/dev/null >"$tmp/all"
"$PT_BIN/pt-decode" --text -F pid,tid,cpu,from,to "$out/self.ptc" 2>"$tmp/err" >"$tmp/others"
awk 'NR == FNR { own[$1] = 1; next } /^#/ || !($1 in own)' "$tmp/pids" "$tmp/all" >"$tmp/expected"
same "all others, to the branch" <(sort -s -k3,3n "$tmp/expected") <(sort -s -k3,3n "$tmp/others")
left_out=$(($(wc -l <"$tmp/all") - $(wc -l <"$tmp/expected")))
check "how much it was, $left_out branches: $(cat "$tmp/err")" grep -q "^pt-decode: $left_out branches, .* left out" "$tmp/err"
check "it was something" test "$left_out" -gt 1000
"$PT_BIN/pt-decode" -q "$out/self.ptc" | "$PT_BIN/pt-load" -q "$tmp/self.db"
same "nothing of it is in a database" <(echo 0) <(sqlite3 "$tmp/self.db" "SELECT count(*) FROM branches WHERE comm = 'pt-capture' AND
	pid IN ($(paste -sd, "$tmp/pids"))")
