# What libFuzzer came to (tests/fuzz/corpus), given to the same harnesses again: no crash, no hang, nothing
# out of order.
# timeout: 600
source tests/common.bash
for name in packets flow container rewrite records load import trace_dat files seekable; do
	mkdir "$tmp/$name" && tar -xzf "tests/fuzz/corpus/$name.tar.gz" -C "$tmp/$name"
	"$PT_BUILD/tests/fuzz/replay_$name" "$tmp/$name" >"$tmp/out" 2>&1
	succeeded $? "$name: $(tail -n 3 "$tmp/out")"
	inputs=$(find "$tmp/$name" -type f ! -name '.*' | wc -l)
	check "$name: each input of its corpus is replayed" grep -qx "$inputs inputs replayed, 0 not read" "$tmp/out"
done
