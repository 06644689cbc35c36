#!/usr/bin/env bash
# node, whose JavaScript becomes machine code while it runs, with --jit: each branch that is decoded is one that the machine saw, what is
# missing lies at errors, and the hot code has its name, by --perf-basic-prof.
# timeout: 1500
source tests/common.bash
source tests/ptbox.bash
command -v node >/dev/null || {
	skip 1 "no node"
	exit 0
}
programs node
cat >"$host/hot.js" <<'EOS'
function hotLoop(a, n) {
	let s = 0;
	for (let i = 0; i < n; i++) { s = (s * 31 + a[i % a.length]) | 0; if (s & 1) s ^= 0x55; }
	return s;
}
const fs = require('fs'), a = [1, 2, 3, 5, 8, 13];
let t = 0;
for (let k = 0; k < 300; k++) t ^= hotLoop(a, 2000);
fs.writeFileSync('/host/out/go', '');
while (!fs.existsSync('/host/out/done')) for (let k = 0; k < 30; k++) t ^= hotLoop(a, 2000);
EOS
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
node --perf-basic-prof /host/hot.js &
pid=$!
until [ -e go ]; do usleep 20000; done
pt-capture --jit -m 1M,16M -e intel_pt/psb_period=1/u -p $pid -d 0.03 -o node.ptc 2>node.err
echo $? >node.status
pt-capture -m 1M,16M -e intel_pt/psb_period=2/u -p $pid -d 0.005 -o without.ptc 2>without.err
touch done
wait $pid
exit 0
EOS
box -c 1 -m 2000
cat "$out/node.err"
pieces node 1 "$out/node.ptc" u
lines() { "$PT_BIN/pt-decode" --text -F from,to "$1" 2>/dev/null | grep -vc '^#'; }
all=$(captured_truth 0 "$out/node.ptc" u | wc -l)
decoded=$(lines "$out/node.ptc")
check "$decoded of $all branches" test "$decoded" -gt $((all * 9 / 10))
echo "without --jit: $(lines "$out/without.ptc") of $(captured_truth 0 "$out/without.ptc" u | wc -l) branches"
"$PT_BIN/pt-decode" -q "$out/node.ptc" 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/node.db"
named=$(sqlite3 "$tmp/node.db" "SELECT count(*) FROM branches WHERE from_symbol LIKE 'JS:%hot.js%'")
check "$named branches of the JavaScript by its name" test "$named" -gt $((all / 4))
