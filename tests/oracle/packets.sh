# Packets of recordings from real processors: pt-decode --packets prints what libipt's packet decoder does.
# timeout: 120
source tests/common.bash
traces=$PT_SHARED/traces
if [ ! -d "$traces" ]; then
	skip 19 "packets: no $traces"
	exit
fi
for ref in "$traces"/*/*/ref/*.packets.txt.zst; do
	folder=$(dirname "$(dirname "$ref")")
	name=$(basename "$ref" .packets.txt.zst)
	raw=
	# The folders have names of their own for the raw bytes.
	for f in "$folder/$name.pt" "$folder/$name.bin" "$folder/$name.trace" "$folder/cores/${name#cpu}.intelpt_trace"; do
		[ -e "$f" ] && raw=$f
	done
	if [ -z "$raw" ]; then
		fail "no raw bytes for $ref"
		continue
	fi
	"$PT_BIN/pt-capture" import --raw "$raw" -o "$tmp/c" || fail "import $raw"
	"$PT_BIN/pt-decode" --packets "$tmp/c" >"$tmp/got" 2>"$tmp/err"
	zstd -dq "$ref" -c >"$tmp/expected"
	# Newer fields that libipt 2.0.5 does not print.
	sed -i 's/^\(.* mode exec csl=. csd=.\) if=1$/\1/' "$tmp/got"
	same "${raw#"$traces/"}" "$tmp/expected" "$tmp/got"
done
