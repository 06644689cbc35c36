#!/usr/bin/env bash
# decode/insn.c against objdump over whole libraries: lengths, classes, branch targets.
# timeout: 180
set -u
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

finish() { # passed, failed, skipped
	printf '%d passed, %d failed%s\n' "$1" "$2" "$([ "$3" -eq 0 ] || printf ', %d skipped' "$3")"
	exit $(($2 > 0))
}

if ! command -v objdump >/dev/null; then
	echo "skipped: objdump is not installed (binutils)"
	finish 0 0 1
fi
lens=${PT_BUILD:-$top/build}/tests/oracle/insn_lens
if [ ! -x "$lens" ]; then
	lens=$work/insn_lens
	${CC:-cc} -std=c11 -O2 -D_GNU_SOURCE -I"$top" -o "$lens" "$top/tests/oracle/insn_lens.c" \
		"$top/decode/insn.c" || finish 0 1 0
fi

library() { # soname: its path
	{ PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null; } | awk -v l="$1" '$1 == l && /x86-64/ { print $NF; exit }'
}

# Each file with the share, in millionths, that may be no code. cc1 has 20 MB of compiled code; OpenSSL keeps
# tables among its assembly; x265 and dav1d, where present, bring AVX-512 and much hand-written SIMD.
check() { # path, ppm
	objdump -d -z -w -M intel64 --insn-width=16 "$1" 2>"$work/objdump.err" | "$lens" "${1##*/}" "$2"
}
skipped=0
{
	for f in "$(library libc.so.6) 100" "$(library libm.so.6) 200" "$(library libcrypto.so.3) 20000" \
		"$(${CC:-gcc} -print-prog-name=cc1 2>/dev/null) 100" "$(library libx265.so.199) 100" \
		"$(library libdav1d.so.6) 100"; do
		read -r path ppm <<<"$f"
		[ -f "$path" ] && check "$path" "$ppm"
	done
} | tee "$work/out"
passed=$(grep -c '^ok ' "$work/out")
failed=$(grep -c '^FAIL ' "$work/out")
insns=$(sed -n 's/^  .*: \([0-9]*\) instructions.*/\1/p' "$work/out" | awk '{ n += $1 } END { print n + 0 }')
if [ "$insns" -lt 1000000 ]; then
	echo "skipped: only $insns instructions: no cc1 found (gcc)"
	skipped=1
fi
finish "$passed" "$failed" "$skipped"
