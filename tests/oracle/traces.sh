# Recordings from real processors with their programs: our taken branches are those that libipt finds.
# timeout: 120
source tests/common.bash
traces=$PT_SHARED/traces
if [ ! -d "$traces" ]; then
	skip 13 "traces: no $traces"
	exit
fi
dynamorio="--mtc-freq 3 --cpu 6/85/7 --nom-freq 30 --tsc-ratio 250/2"
gold="--mtc-freq 3 --cpu 6/85/4 --nom-freq 37 --tsc-ratio 308/2"
skylake="--mtc-freq 3 --cpu 6/94/3 --nom-freq 32 --tsc-ratio 266/2"
while IFS='|' read -r folder raw ref options elfs; do
	cd "$traces/$folder" || continue
	elf=()
	for e in $elfs; do
		elf+=(--elf "$e")
	done
	# shellcheck disable=SC2086
	if ! "$PT_BIN/pt-capture" import --raw "$raw" $options "${elf[@]}" -o "$tmp/c"; then
		fail "$folder: import"
		continue
	fi
	"$PT_BIN/pt-decode" --text -F from,to "$tmp/c" >"$tmp/text" 2>"$tmp/err"
	status=$?
	zstd -dqc "ref/$ref.flow.txt.zst" >"$tmp/flow"
	awk -f "$OLDPWD/tests/oracle/flow2edges.awk" "$tmp/flow" >"$tmp/expected"
	awk -f "$OLDPWD/tests/oracle/visible.awk" "$tmp/expected" "$tmp/text" >"$tmp/got"
	# libipt's errors are ours: exit status 3 says so. It then waits for the next PSB, we for an IP with
	# code.
	errors=$(grep -c '^x' "$tmp/flow")
	if [ "$errors" -eq 0 ]; then
		same "$folder $ref" "$tmp/expected" "$tmp/got"
	else
		diff "$tmp/expected" "$tmp/text" | grep '^<' >"$tmp/missing"
		same "$folder $ref: what libipt finds" /dev/null "$tmp/missing"
	fi
	check "$folder $ref: exit status $status, libipt met $errors errors; $(grep '^#' "$tmp/text" | head -n 3)" \
		test "$status" -eq $((errors ? 3 : 0))
	cd "$OLDPWD" || exit
done <<-END
	dynamorio/hello-20220606|pt.bin|pt|$dynamorio|hello
	dynamorio/hello-20220621|pt.bin|pt|$dynamorio|hello
	dynamorio/hello-20220622|pt.bin|pt|$dynamorio|hello
	dynamorio/hello-20220622a|pt.bin|pt|$gold|hello
	dynamorio/hello-20220706|pt.bin|pt|$gold|hello
	dynamorio/hello-20220708|pt.bin|pt|$gold|hello
	hase/control_flow-broadwell-20180515|aux-idx1.pt|aux-idx1|--cpu 6/61/4 --nom-freq 26|symfs/home/joerg/git/hase/tests/bin/control_flow/control_flow
	hase/control_flow-skylake-20180404|aux-idx1.pt|aux-idx1|$skylake|symfs/home/joerg/git/angr/hase/tests/bin/control_flow/control_flow
	hase/loopy-broadwell-20180514|aux-idx1.pt|aux-idx1|--cpu 6/61/4 --nom-freq 26|symfs/home/joerg/git/hase/tests/bin/loopy/loopy
	hase/loopy-skylake-20180404|aux-idx2.pt|aux-idx2|$skylake|symfs/home/joerg/git/angr/hase/tests/bin/loopy/loopy
	lldb/intelpt-multi-core-trace|cores/45.intelpt_trace|cpu45|--cpu 6/85/4|modules/m.out
	lldb/intelpt-multi-core-trace|cores/51.intelpt_trace|cpu51|--cpu 6/85/4|modules/m.out
	lldb/intelpt-trace-multi-file|multi-file.trace|multi-file|--cpu 6/79/1|a.out:400000 libfoo.so:7ffff7bd9000 libbar.so:7ffff79d7000
	lldb/intelpt-trace|3842849.trace|3842849|--cpu 6/79/1|a.out:400000
END
