#!/usr/bin/env bash
# decode/insn.c against Zydis over random bytes in 64-, 32- and 16-bit mode; see insn_zydis.c.
# timeout: 120
set -u
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tool=${PT_BUILD:-$top/build}/tests/oracle/insn_zydis
if [ ! -x "$tool" ]; then
	echo "skipped: $tool is not built (libzydis-dev)"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
# The sanitizers slow both decoders down.
exec "$tool" "$([ -n "${SANITIZE:-}" ] && echo 500000 || echo 5000000)"
