# programs.bash - builds tests/programs and runs the step engine over them and over what every Debian has.
# Sourced after common.bash. `programs` lists their names; `command_of NAME` fills the array $command.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154
# They are where all tests of a run find them: captures, which are shared as well, name them, and perf opens
# them by name. A step takes up to 30 us in a virtual machine: so what is captured with many options is linked statically, for ld.so
# takes 60,000 instructions, and so is C++'s library, for which it takes 1.5 million.
built=${PT_CACHE:-$tmp/cache}/programs
mkdir -p "$built"
build_programs() {
	local source name compile
	for source in tests/programs/*.c tests/programs/*.cc; do
		name=$(basename "${source%.*}")
		case $source in
		*/static.c | */indirect.c | */signals.c | */threads.c) compile=(gcc -static) ;;
		*.cc) compile=(g++ -static-libstdc++ -static-libgcc) ;;
		*) compile=(gcc) ;;
		esac
		"${compile[@]}" -O1 -g -pthread -o "$built/$name" "$source" || return
	done
	touch "$built.done"
}
{
	flock 9
	[ -e "$built.done" ] || build_programs
} 9>"$built.lock" || fail "tests/programs do not compile"
programs() { # every other test in the opposite order, so that two do not wait for each other's captures
	(cd "$built" && ls) && printf '%s\n' ls sh
}
[ $((${PT_TEST:-0} % 2)) -eq 0 ] || programs() { { (cd "$built" && ls) && printf '%s\n' ls sh; } | tac; }
command_of() {
	case $1 in
	ls) command=(/bin/ls tests) ;;
	sh)
		# shellcheck disable=SC2016
		command=(sh -c 'for i in 1 2; do echo $i; done | tr 1-3 a-c; (exit 3)')
		;;
	*) command=("$built/$1") ;;
	esac
}
# capture NAME [-e TERMS]: $tmp/c.ptc, $tmp/stdout (the program's), $tmp/truth, and the latter by thread in $tmp/expected. A run of
# tests captures each only once, in $PT_CACHE.
capture() {
	local status key cache=${PT_CACHE:-$tmp/cache}
	key=$cache/$(sed 's/ -e mtc_period=3$//; s/[ ,=]/_/g' <<<"$*") # which is the default
	mkdir -p "$cache"
	(
		flock 9
		[ ! -e "$key.status" ] || exit 0
		command_of "$1"
		"$PT_BIN/pt-capture" -q --no-exit-status "${@:2}" --truth "$key.truth" -o "$key.ptc" -- "${command[@]}" \
			>"$key.stdout" 2>"$key.stderr" </dev/null 9>&-
		echo $? >"$key.status"
	) 9>"$key.lock"
	status=$(cat "$key.status")
	[ "$status" -eq 0 ] || fail "capture $*: exit status $status: $(tail -n 2 "$key.stderr")"
	cp "$key.ptc" "$tmp/c.ptc"
	cp "$key.stdout" "$tmp/stdout"
	cp "$key.truth" "$tmp/truth"
	sort -s -n -k1,1 "$key.truth" >"$tmp/expected"
	return "$status"
}
