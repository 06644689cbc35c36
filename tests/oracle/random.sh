# Random programs by an encoder of the SDM's rules: the decoder comes to what was executed, and so does libipt,
# where it can (tests/oracle/random). `make check-nightly` runs 10,000.
# timeout: 900
source tests/common.bash
"$tools/random_flow" "${RANDOM_PROGRAMS:-500}" >"$tmp/out"
counts "$tmp/out"
agreed=$(sed -n 's/^libipt: \([0-9]*\) programs the same.*/\1/p' "$tmp/out")
check "libipt decodes enough of them: $agreed" test "${agreed:-0}" -ge $((${RANDOM_PROGRAMS:-500} / 5))
cat "$tmp/out"
