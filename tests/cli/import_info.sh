#!/usr/bin/env bash
# pt-capture import --raw and info on the command line: usage, unreadable and odd inputs, full disks, closed
# pipes, and that nothing half-made is left.
source tests/common.bash

capture=$PT_BIN/pt-capture
aux=$tmp/aux
printf '\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82' >"$aux"
head -c 3000000 /dev/urandom >"$tmp/big"

# expect STATUS PATTERN ARGUMENTS...: the exit status, and a line on stderr that matches; nothing from a
# sanitizer
expect() {
	local status
	"$capture" "${@:3}" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	if [ $status -ne "$1" ]; then
		fail "${*:3}: exit status $status, not $1: $(head -n 3 "$tmp/err")"
	elif [ -n "$2" ] && ! grep -qE -- "$2" "$tmp/err"; then
		fail "${*:3}: stderr has no '$2': $(head -n 3 "$tmp/err")"
	elif [ -n "$2" ] && ! grep -q '^pt-capture: ' "$tmp/err"; then
		fail "${*:3}: the message does not begin with 'pt-capture: ': $(head -n 3 "$tmp/err")"
	else
		pass "${*:3}"
	fi
}

# ---- Usage
"$capture" >"$tmp/out" 2>"$tmp/err"
check "no arguments: 2" test $? -eq 2
check "no arguments: usage on stderr" grep -q '^usage: pt-capture' "$tmp/err"
for arguments in "--help" "info --help" "import --help" "import --raw --help" "export --help"; do
	# shellcheck disable=SC2086
	"$capture" $arguments >"$tmp/out" 2>"$tmp/err"
	check "$arguments: 0" test $? -eq 0
	check "$arguments: usage on stdout" grep -q '^usage: pt-capture' "$tmp/out"
	check "$arguments: nothing on stderr" test ! -s "$tmp/err"
done
check "--version" grep -qx 'pt-capture [0-9.]*' <("$capture" --version)
expect 2 'raw' import
expect 2 'raw' import --elf /bin/true
expect 2 'both of thread 1' import --raw "$aux" --raw "$aux"
expect 2 'both of CPU 3' import --raw "$aux" --on-cpu 3 --raw "$aux" --on-cpu 3
expect 2 'after a --raw' import --on-cpu 3 --raw "$aux"
expect 2 'there is none' import --raw "$aux" --sample-type 6
expect 2 'a number' import --raw "$aux" --sideband "$aux" --sample-type x
expect 2 'unrecognized|invalid' import --raw "$aux" --nonsense
expect 2 'argument' import --raw
expect 2 'no further file' import --raw "$aux" more
for bad in "--cpu 6/85" "--cpu a/b/c" "--cpu 6/85/4x" "--mtc-freq 16" "--mtc-freq x" "--mtc-freq -1" "--tsc-ratio 0/2" \
	"--tsc-ratio 160" "--tsc-ratio 160/0" "--nom-freq 256" "--time-shift 64" "--pid 99999999999" "--tid -1" "-z 20" "-z -101" \
	"-z x" "--raw-code x" "--raw-code x:1:2" "--raw-code $aux:0:0:1000" "--raw-code $aux:0:10:ffffffffffffffff" \
	"--time-mult 5" "--time-zero 5" "--pt-config x"; do
	# shellcheck disable=SC2086
	expect 2 '.' import --raw "$aux" $bad
done
expect 2 'too much' info a b
expect 2 'invalid|unrecognized' info --nonsense
if command -v script >/dev/null; then
	script -qec "$capture import --raw $aux" /dev/null >"$tmp/out" 2>&1 </dev/null
	check "a container on a terminal: 1" test $? -eq 1
	check "a container on a terminal: says what to do" grep -q -- '-o' "$tmp/out"
else
	skip 2 "no script(1) here"
fi

# ---- Inputs that are not what they should be
expect 1 'No such file' import --raw "$tmp/none"
expect 1 'Is a directory' import --raw "$tmp"
expect 1 'empty' import --raw /dev/null
expect 1 'No such file' import --raw "$aux" --sideband "$tmp/none"
printf '\1\0\0\0\0\0\4\0' >"$tmp/side"
expect 1 'no perf record.*byte 0' import --raw "$aux" --sideband "$tmp/side"
printf '\3\0\0\0\0\0\20\0\1\0\0\0\1\0\0\0\3\0\0' >"$tmp/side"
expect 1 'ends inside a record.*byte 16' import --raw "$aux" --sideband "$tmp/side"
expect 1 'No such file' import --raw "$aux" --elf "$tmp/none"
expect 1 'not an ELF' import --raw "$aux" --elf "$aux"
expect 1 'not an ELF' import --raw "$aux" --elf /dev/null
expect 1 'not an ELF' import --raw "$aux" --elf "$tmp"
expect 1 'No such file' import --raw "$aux" --maps "$tmp/none"
expect 1 'Is a directory' import --raw "$aux" --maps "$tmp"
printf '1000 2000 0 none.img\n' >"$tmp/maps"
expect 1 'none.img.*No such file' import --raw "$aux" --maps "$tmp/maps"
for line in 'x' '1000' '1000 2000' '1000 2000 0' '2000 1000 0 aux' '1000 1000 0 aux' '-1 2000 0 aux' '1000 2000 0 ' \
	'1000 11111111111111111 0 aux' '1000 2000 fffffffffffff800 aux'; do
	printf '# a comment\n\n%s\n' "$line" >"$tmp/maps"
	expect 1 'line 3' import --raw "$aux" --maps "$tmp/maps"
done
printf '1000 2000 100 aux\n' >"$tmp/maps"
expect 1 'ends before offset 0x100' import --raw "$aux" --maps "$tmp/maps"
expect 1 'is not a perf.data' import "$aux"
printf 'PERFILE2and so on' >"$tmp/perf.data"
expect 1 'perf.data' import "$tmp/perf.data"
expect 1 'No such file' import "$tmp/none"
zstd -q "$tmp/big" -o "$tmp/big.zst"
head -c 1000000 "$tmp/big.zst" >"$tmp/cut.zst"
expect 1 'cut' import --raw "$tmp/cut.zst"
printf '\x28\xb5\x2f\xfdnonsense' >"$tmp/bad.zst"
expect 1 'broken zstd' import --raw "$tmp/bad.zst"
if [ "$(id -u)" -ne 0 ]; then
	install -m 0 "$aux" "$tmp/secret"
	expect 1 'Permission denied' import --raw "$tmp/secret"
	expect 1 'Permission denied' info "$tmp/secret"
fi
# Broken ELF files: a clear error or a container that can be read, never a crash.
for i in {1..60}; do
	cp /bin/true "$tmp/broken"
	for _ in {1..20}; do
		printf '%b' "\\x$(printf %x $((RANDOM % 256)))" |
			dd of="$tmp/broken" bs=1 seek=$((i % 2 ? RANDOM % 1000 : RANDOM % 35000)) conv=notrunc status=none
	done
	[ $((i % 5)) -ne 0 ] || truncate -s $((RANDOM % 35000)) "$tmp/broken"
	timeout 300 "$capture" import --raw "$aux" --elf "$tmp/broken" -o "$tmp/broken.ptc" 2>"$tmp/err"
	status=$?
	check "broken ELF $i: status $status $(head -n 2 "$tmp/err")" test $status -le 1
	[ $status -ne 0 ] || check "broken ELF $i: info" "$capture" info "$tmp/broken.ptc" >/dev/null
	rm -f "$tmp/broken.ptc"
done

# ---- info
expect 1 'No such file' info "$tmp/none"
expect 1 'Is a directory' info "$tmp"
expect 1 'empty' info /dev/null
expect 1 'not a container' info "$aux"
expect 1 'empty' info
"$capture" import --raw "$tmp/big.zst" --elf /bin/true -o "$tmp/good.ptc" 2>"$tmp/err"
check "import of compressed AUX" test $? -eq 0
check "info of standard input" "$capture" info - <"$tmp/good.ptc" >"$tmp/out"
check "info says complete" grep -qx complete "$tmp/out"
check "info knows the bytes" grep -q 'pid 1 tid 1, 3000000 bytes' "$tmp/out"
head -c 2000000 "$tmp/good.ptc" >"$tmp/cut.ptc"
expect 3 '' info "$tmp/cut.ptc"
check "info says where it is cut" grep -q 'NOT COMPLETE.*cut.*byte 2000000' "$tmp/out"
expect 3 '' info --json "$tmp/cut.ptc"
check "info --json of a cut one" python3 -m json.tool "$tmp/out" /dev/null
"$capture" info "$tmp/good.ptc" >/dev/full 2>"$tmp/err"
check "info to a full disk: 1" test $? -eq 1
check "info to a full disk: says so" grep -q 'No space left' "$tmp/err"

# ---- Raw code and maps, as they come out
{
	printf '%x %x 0 big\n' $((16#400000)) $((16#402000))
	printf '%x %x 1000 big\n' $((16#500000)) $((16#501000))
	printf '%x %x 10000 %s\n' $((16#700000)) $((16#701000)) "$tmp/big"
} >"$tmp/maps"
expect 0 '' import --raw "$aux" --maps "$tmp/maps" --raw-code "$tmp/big:20000:123:800001" -o "$tmp/maps.ptc"
"$capture" info --json "$tmp/maps.ptc" >"$tmp/out"
check "ranges of a mapped file are joined" python3 - "$tmp/out" <<-'END'
	import json, sys
	i = json.load(open(sys.argv[1]))
	assert i["sideband"]["types"] == {"COMM": 1, "MMAP2": 4, "ITRACE_START": 1}, i["sideband"]
	assert [(r["offset"], r["size"]) for r in i["images"][0]["ranges"]] == [(0, 0x2000), (0x10000, 0x1000), (0x20000, 0x123)]
END
mv "$tmp/big" "$tmp/elsewhere"
expect 0 '' import --raw "$aux" --maps "$tmp/maps" -o "$tmp/maps2.ptc"
"$capture" info --json "$tmp/maps2.ptc" >"$tmp/out2"
check "FILE.zst stands in for FILE" grep -q "\"name\": \"$tmp/big\"" "$tmp/out2"
mv "$tmp/elsewhere" "$tmp/big"

# ---- Outputs that cannot be written: nothing is left, and what was there remains
mkdir "$tmp/dir"
echo before >"$tmp/dir/old"
expect 1 'No such file' import --raw "$aux" -o "$tmp/none/x"
expect 1 'Is a directory' import --raw "$aux" -o "$tmp"
expect 1 'empty' import --raw /dev/null -o "$tmp/dir/old"
expect 1 'cut' import --raw "$tmp/cut.zst" -o "$tmp/dir/new"
(
	ulimit -f 100
	trap '' XFSZ
	"$capture" import --raw "$tmp/big" -o "$tmp/dir/old" 2>"$tmp/err"
)
check "full disk: 1" test $? -eq 1
check "full disk: says so, and which file" grep -qF "cannot write $tmp/dir/old: File too large" "$tmp/err"
"$capture" import --raw "$tmp/big" -o /dev/full 2>"$tmp/err"
check "/dev/full: 1" test $? -eq 1
check "/dev/full: says so" grep -q 'No space left' "$tmp/err"
check "what was there is there" grep -qx before "$tmp/dir/old"
check "nothing else is there" test "$(ls -A "$tmp/dir")" = old
"$capture" import --raw "$tmp/big" -o - 2>"$tmp/err" | head -c 1000 >/dev/null
check "closed pipe: 1" test "${PIPESTATUS[0]}" -eq 1
check "closed pipe: quiet" test ! -s "$tmp/err"
"$capture" info --json "$tmp/good.ptc" 2>"$tmp/err" | true
check "info, closed pipe: quiet" test ! -s "$tmp/err"
ln -s old "$tmp/dir/link"
expect 0 '' import --raw "$aux" -o "$tmp/dir/link"
check "a link remains a link" test -L "$tmp/dir/link"
check "and what it leads to is the container" "$capture" info "$tmp/dir/old" >/dev/null
