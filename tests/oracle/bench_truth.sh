# The twelve long recordings of ../shared/bench, made by an encoder that is not ours: pt-decode's counts by
# kind of branch, its last address and its hash over all branches, not-taken ones too, are those of the true
# execution.
# timeout: 600
source tests/common.bash
inputs=$PT_SHARED/bench
if [ ! -d "$inputs" ]; then
	skip 12 "bench_truth: no $inputs"
	exit
fi
keys="ip insn jcc_taken jcc_not jmp call ijmp icall ret syscall async hash errors"
for w in gzip lua cc1 sqlite; do
	while read -r v truth; do
		"$PT_BIN/pt-capture" import --raw "$inputs/$w.$v.aux.zst" --maps "$inputs/$w.maps" --mtc-freq 3 \
			--tsc-ratio 160/2 --nom-freq 20 -o "$tmp/c"
		check "$w $v: import" test $? -eq 0
		"$PT_BIN/pt-decode" --null --stats "$tmp/c" >"$tmp/stats" 2>"$tmp/err"
		check "$w $v: exit status $?: $(tail -n 2 "$tmp/err")" test -s "$tmp/stats" -a ! -s "$tmp/err"
		for key in $keys; do
			case $key in
			errors) echo "errors 0" ;;
			async)
				# Recordings end with FUP and TIP.PGD, which the truth does not count.
				echo "async $(($(grep -o "async=[0-9]*" <<<"$truth" | cut -d= -f2) + 1))" ;;
			*) tr ' ' '\n' <<<"$truth" | sed -n "s/^$key=/$key /p" ;;
			esac
		done >"$tmp/expected"
		for key in $keys; do
			sed -n "s/^stats\.$key /$key /p" "$tmp/stats"
		done >"$tmp/got"
		same "$w $v" "$tmp/expected" "$tmp/got"
		# With little memory the graph is forgotten and built again, and comes to as much. (Calls have an error then: too many paths.)
		value() { sed -n "s/^stats\.$1 //p" "$tmp/stats"; }
		for options in "" "--memory 1 --no-calls"; do
			# shellcheck disable=SC2086
			"$PT_BIN/pt-decode" --null -v $options "$tmp/c" 2>&1 | sed 's/ in [0-9]* runs$//' >"$tmp/got"
			echo "pt-decode: $(value aux_bytes) AUX bytes, $(value packets) packets, $(value insn) instructions," \
				"$(value branches) taken branches" >"$tmp/expected"
			same "$w $v: --null $options" "$tmp/expected" "$tmp/got"
		done
	done <"$inputs/$w.truth"
done
