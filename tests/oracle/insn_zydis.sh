#!/usr/bin/env bash
# decode/insn.c against Zydis over random bytes in 64-, 32- and 16-bit mode; see insn_zydis.c.
# timeout: 120
set -u
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tool=${PT_BUILD:-$top/build}/tests/oracle/insn_zydis
if [ ! -x "$tool" ]; then
	work=$(mktemp -d) || exit 1
	trap 'rm -rf "$work"' EXIT
	tool=$work/insn_zydis
	if ! ${CC:-cc} -std=c11 -O2 -D_GNU_SOURCE -I"$top" -o "$tool" "$top/tests/oracle/insn_zydis.c" \
		"$top/decode/insn.c" -lZydis 2>/dev/null; then
		echo "skipped: Zydis is not installed (libzydis-dev)"
		echo "0 passed, 0 failed, 1 skipped"
		exit 0
	fi
fi
# The sanitizers slow both decoders down.
"$tool" "$([ -n "${SANITIZE:-}" ] && echo 500000 || echo 5000000)"
