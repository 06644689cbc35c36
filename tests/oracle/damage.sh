# A container or record stream that is cut anywhere, or has any bit flipped, gives an error, or the right
# branches up to there with an error; never a crash, a hang or a wrong branch. See damage.c.
# timeout: 600
source tests/common.bash

# A program of a few instructions: its container is small enough to try every bit, or a twelfth of them.
cat >"$tmp/tiny.s" <<'END'
	.globl _start
_start:	mov $5, %ebx
1:	call f
	lea g(%rip), %rax
	call *%rax
	dec %ebx
	jnz 1b
	mov $39, %eax		# getpid
	syscall
	mov $60, %eax		# exit
	xor %edi, %edi
	syscall
f:	test $1, %bl
	jz 2f
	nop
2:	ret
g:	lea 3f(%rip), %rdx
	jmp *%rdx
	ud2
3:	ret
END
gcc -nostdlib -static -Wl,-z,noseparate-code,--build-id -o "$tmp/tiny" "$tmp/tiny.s" || exit
"$PT_BIN/pt-capture" -q -o "$tmp/tiny.ptc" -- "$tmp/tiny" || fail "capture of tiny"
"$PT_BIN/pt-decode" -q -o "$tmp/tiny.ptr" "$tmp/tiny.ptc" || fail "decode of tiny"
# Real programs, for samples: C and its libraries.
trace_of_true "$tmp/big.ptc" cyc
"$PT_BIN/pt-decode" -q -o "$tmp/big.ptr" "$tmp/big.ptc" || fail "decode of true"

few=200 mutations=4000 flips=4000
[ -z "${DAMAGE_ALL:-}" ] || flips= # each bit: make check-nightly
[ -z "${SANITIZE:-}" ] || few=50 mutations=1000
while read -r mode file n; do
	"$tools/damage" "$mode" "$tmp/$file" ${n:+"$n"} >"$tmp/out" 2>"$tmp/err"
	grep -aE 'runtime error|AddressSanitizer|LeakSanitizer' "$tmp/err" | sort | uniq -c | head -n 5
	counts "$tmp/out"
	echo "$mode $file: $(tail -n 2 "$tmp/out" | head -n 1)"
done <<-END
	flips tiny.ptc $flips
	cuts tiny.ptc
	flips big.ptc $few
	cuts big.ptc $few
	mutate tiny.ptc $mutations
	mutate big.ptc $few
	records-flips tiny.ptr
	records-cuts tiny.ptr
	records-flips big.ptr $few
	records-cuts big.ptr $few
	records-mutate tiny.ptr $mutations
	records-mutate big.ptr $few
END

# The programs themselves, through pipes: exit statuses, messages, and a database that is whole or not there.
"$PT_BIN/pt-decode" --text -F tid,from,to "$tmp/big.ptc" >"$tmp/right" 2>/dev/null
size=$(stat -c %s "$tmp/big.ptc")
for part in 1 5 17 30 50 70 90 98; do
	head -c $((size * part / 100)) "$tmp/big.ptc" >"$tmp/cut.ptc"
	"$PT_BIN/pt-decode" --text -F tid,from,to <"$tmp/cut.ptc" 2>"$tmp/err" >"$tmp/text"
	status=$?
	grep -v '^#' "$tmp/text" >"$tmp/got"
	check "cut at $part %: exit status $status" test "$status" -eq 3 -o "$status" -eq 1
	check "cut at $part %: no message" test -s "$tmp/err"
	check "cut at $part %: not an error of --text" test "$status" -eq 1 -o "$(grep -c '^# .* truncated container: cut at ' "$tmp/text")" -eq 1
	head -n "$(wc -l <"$tmp/got")" "$tmp/right" >"$tmp/expected"
	check "cut at $part %: a branch that was not" cmp "$tmp/expected" "$tmp/got" # none at all, where that is cut off
	head -c $(($(stat -c %s "$tmp/big.ptr") * part / 100)) "$tmp/big.ptr" | "$PT_BIN/pt-load" -q "$tmp/cut.db" 2>"$tmp/err"
	status=$?
	check "records cut at $part %: exit status $status" test $status -eq 1
	check "records cut at $part %: a database was left" test ! -e "$tmp/cut.db"
done
