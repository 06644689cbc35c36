#!/usr/bin/env bash
# -p PID of a program that makes threads and processes while pt-capture opens the events of those that it has: each is traced,
# and has what it inherits once.
# timeout: 600
source tests/common.bash
source tests/ptbox.bash
gcc -O1 -pthread -static -o "$host/bin/begun" tests/ptbox/begun.c || exit 1
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
for n in 1 2 3; do
	mkfifo go.$n
	# The process that becomes pt-capture is there first, so that its number is known.
	sh -c "read -r pid <go.$n; exec pt-capture -v -o $n.ptc --all-user -p \$pid -d 1 2>$n.err" & capture=$!
	begun 100 /proc/$capture/fd >$n.out 2>$n.began & pid=$!
	until grep -q waits $n.began; do usleep 10000; done
	echo $pid >go.$n
	wait $capture || exit 1
	grep -q made $n.began || exit 1
	kill $pid $(cat /proc/$pid/task/*/children)
	rm go.$n
done
exit 0
EOS
box -c 2
lacked=0
for n in 1 2 3; do
	cat "$out/$n.err"
	check "$n: 45 began while events were opened or later" test "$(sort -u "$out/$n.out" | wc -l)" -eq 45
	"$PT_BIN/pt-decode" --text -F tid "$out/$n.ptc" >"$tmp/text" 2>"$tmp/err"
	succeeded $? "$n: no errors: $(head -n 2 "$tmp/err")"
	grep -v '^#' "$tmp/text" | sort -u >"$tmp/traced"
	check "$n: each is traced: $(sort -u "$out/$n.out" | comm -23 - "$tmp/traced" | tr '\n' ' ')" \
		test -z "$(sort -u "$out/$n.out" | comm -23 - "$tmp/traced")"
	lacked=$((lacked + $(sed -n 's/.*while events were opened; \([0-9]*\) of them.*/\1/p' "$out/$n.err")))
done
check "some did not inherit all: $lacked" test $lacked -gt 0
exact 2 "all" "$out/1.ptc" "$out/2.ptc" "$out/3.ptc"
