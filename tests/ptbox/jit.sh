#!/usr/bin/env bash
# Code that a program makes while it runs, with --jit: each branch that is decoded is one that the machine saw, each that is missing lies at
# an error. Of code that is not writable while it can run none is missing.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
compiled jit_phases
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
pt-capture --jit -m 1M,64M -e psb_period=1/u -o jit.ptc -- jit_phases 2 >jit.out 2>jit.err || exit 1
EOS
sed -i 's|psb_period=1/u|intel_pt/psb_period=1/u|' "$host/run.sh"
box -c 2
cat "$out/jit.err"
pieces jit 2 "$out/jit.ptc" u
# What is never writable while it can run is whole; of the rest a good part is known.
read -r page <"$out/jit.out"
for cpu in 0 1; do captured_truth $cpu "$out/jit.ptc" u; done >"$tmp/truth"
"$PT_BIN/pt-decode" --text -F from,to "$out/jit.ptc" 2>/dev/null | grep -v '^#' >"$tmp/got"
whole() { grep "^${page:2:${#page}-5}" "$1" | sort | uniq -c; } # of the four pages
same "code that is not writable: all branches" <(whole "$tmp/truth") <(whole "$tmp/got")
check "there is some: $(whole "$tmp/truth" | head -n 1)" test "$(whole "$tmp/truth" | wc -l)" -ge 4
echo "decoded: $(wc -l <"$tmp/got") of $(wc -l <"$tmp/truth") branches"
# What is written once where it is executable is known from the first reading that has it: half of its time at least.
once() { grep -c "^$(printf '%x' $((page + 0x4000)) | sed 's/000$//')" "$1"; }
check "written once: $(once "$tmp/got") of $(once "$tmp/truth") branches" test "$(once "$tmp/got")" -gt $(($(once "$tmp/truth") / 3))
