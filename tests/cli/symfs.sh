#!/usr/bin/env bash
# import --symfs DIR: what a recording names is opened as a process does whose root directory that is. An absolute link leads to
# a file of DIR, and nothing leads out of it: a name in a recording is not to be trusted.
source tests/common.bash
t=$tmp/user-ls-cyc
if ! tar -C "$tmp" -xf "$PT_SHARED/traces/emulated/user-ls-cyc.tar.zst" --zstd 2>/dev/null; then
	skip 1 "no $PT_SHARED/traces"
	exit 0
fi
import_files() { "$PT_BIN/pt-capture" import --symfs "$t/symfs" -o "$tmp/$1.ptc" "$t/user.data" 2>"$tmp/$1.err"; }
has_libc() { test "$(grep -c 'libc.so.6' "$tmp/$1.err")" = "$2"; }
libc=$t/symfs/lib/x86_64-linux-gnu/libc.so.6
import_files whole
succeeded $? "import: $(cat "$tmp/whole.err")"
check "libc is found: $(cat "$tmp/whole.err")" has_libc whole 0

mkdir "$t/symfs/moved" "$tmp/outside" && mv "$libc" "$t/symfs/moved/libc" && cp "$t/symfs/moved/libc" "$tmp/outside/libc"
ln -s /moved/libc "$libc"
import_files absolute
check "an absolute link leads to a file below: $(cat "$tmp/absolute.err")" has_libc absolute 0
ln -sf ../../../../../../../../../../moved/libc "$libc"
import_files dots
check "so do many ..: $(cat "$tmp/dots.err")" has_libc dots 0
ln -sf "$tmp/outside/libc" "$libc"
import_files outside
check "a file elsewhere is not taken: $(cat "$tmp/outside.err")" has_libc outside 1
ln -sf "$(realpath --relative-to="$(dirname "$libc")" "$tmp/outside/libc")" "$libc"
import_files relative
check "nor by ..: $(cat "$tmp/relative.err")" has_libc relative 1
rm "$libc" && mkfifo "$libc"
timeout 20 "$PT_BIN/pt-capture" import --symfs "$t/symfs" -o "$tmp/fifo.ptc" "$t/user.data" 2>"$tmp/fifo.err"
check "a FIFO there is not opened: status $?: $(cat "$tmp/fifo.err")" has_libc fifo 1
