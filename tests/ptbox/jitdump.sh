#!/usr/bin/env bash
# Code that a runtime writes down as a jitdump with the TSC's times, as perf records it: imported with --jit, each branch is
# one that the machine saw and none is missing, and perf inject --jit has the same.
source tests/common.bash
source tests/ptbox.bash
with_perf
compiled jitdump
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && vmctl vdso vdso.so || exit 1
perf record -N --no-bpf-event -o jit.data -m,8M -e intel_pt//u -- jitdump /host/out tsc >jit.out 2>jit.err || exit 1
EOS
box -c 1
mkdir -p "$out/symfs/host/bin"
cp "$host/bin/jitdump" "$out/symfs/host/bin/"
perf_imported
check "without --jit it is not known" grep -q 'no code' <("$PT_BIN/pt-decode" --text "$out/jit.perf.ptc" 2>/dev/null)
"$PT_BIN/pt-capture" import --jit -q --symfs "$out/symfs" -o "$out/jit.ptc" "$out/jit.data" 2>"$tmp/err"
succeeded $? "import --jit: $(cat "$tmp/err")"
pieces "jitdump" 1 "$out/jit.ptc" u
check "no errors" test "$("$PT_BIN/pt-decode" --text "$out/jit.ptc" 2>/dev/null | grep -c '^#')" = 0
