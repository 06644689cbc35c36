#!/usr/bin/env bash
# Code that a program makes while it runs, with --jit: each branch that is decoded is one that the machine saw, each that is missing lies at
# an error, and most are there; without --jit none of that code is. What is certain at all, code that is not writable while it runs, is whole.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
compiled jit_phases
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
pt-capture --jit -m 1M,16M -e psb_period=1/u -o jit.ptc -- jit_phases 4 >jit.out 2>jit.err || exit 1
EOS
sed -i 's|psb_period=1/u|intel_pt/psb_period=1/u|' "$host/run.sh"
box -c 2
cat "$out/jit.err"
pieces jit 2 "$out/jit.ptc" u
all=0
for cpu in 0 1; do
	captured_truth $cpu "$out/jit.ptc" u >"$tmp/truth.$cpu"
	all=$((all + $(wc -l <"$tmp/truth.$cpu")))
done
decoded=$("$PT_BIN/pt-decode" --text -F from,to "$out/jit.ptc" 2>/dev/null | grep -vc '^#')
check "$decoded of $all branches" test "$decoded" -gt $((all * 6 / 10))
