# What libFuzzer came to (tests/fuzz/corpus), given to the same harnesses again: no crash, no hang, nothing out of order.
# timeout: 600
source tests/common.bash
for name in packets flow container rewrite records load import trace_dat files; do
	mkdir "$tmp/$name" && tar -xzf "tests/fuzz/corpus/$name.tar.gz" -C "$tmp/$name"
	"$PT_BUILD/tests/fuzz/replay_$name" "$tmp/$name" >"$tmp/out" 2>&1
	check "$name: exit status $?: $(tail -n 3 "$tmp/out")" grep -q ' 0 failed$' "$tmp/out"
	counts "$tmp/out"
done
