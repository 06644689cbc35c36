#!/usr/bin/env bash
# tests/ptbox_examples.sh [NAME...] - records ptbox's examples with Debian's perf, imports and decodes them,
# and holds every branch against the machine's truth. `make check-ptbox-vms` runs it; it takes about 25
# minutes of a core.
# EXAMPLES="NAME..." in place of arguments; KEPT=DIR keeps the recordings in DIR/NAME, or takes them from
# there.
#
# What each is held to:
#   exact     every branch of the truth, no other, no error
#   partly    no branch that the truth has not; what is missing has error rows (code that was gone when perf
#   copied
#             the kernel's: modules and BPF programs that came later; a guest's user space without time; gaps
#             between snapshots), and is not more than that many of a million branches
#   lost      as partly, but every error is one of AUX data that was lost: buffers were too small
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
source tests/common.bash
box=$PT_SHARED/ptbox
if [ ! -e "$box/run.sh" ]; then
	skip 1 "no $box"
	exit 0
fi
kept=${KEPT:-$tmp/kept}
mkdir -p "$kept" && kept=$(cd "$kept" && pwd) || exit 1
"${CC:-cc}" -w -O2 -o "$tmp/truthdump" "$PT_SHARED/tools/truthdump.c" || exit 1

# name, what it is held to, options of the box
examples='user-ls-cyc exact
timeless-user exact
guest-code exact
system-2cpu-kcore exact -c 2
small-aux lost -c 2
snapshot partly:990000
code-changes partly:15000 -c 2
linux-guest exact -m 1536
tsc-scaling exact -m 1536
tsc-offset-change partly:1000 -m 1536
linux-guest-migrate exact -c 2 -m 1536
qemu-guest exact -m 2000
several-vms exact -c 2 -m 2000
timeless-thread partly:20000 -m 1536'
wanted=("${@:-}")
[ $# -gt 0 ] || read -ra wanted <<<"${EXAMPLES:-}"

record() { # NAME OPTION...
	[ -e "$kept/$1/truth-cpu0.bin" ] && return
	rm -rf "$tmp/src" "${kept:?}/$1"
	bash "$box/examples/$1.sh" "$tmp/src" >"$tmp/log" 2>&1 &&
		"$box/run.sh" -t 1800 -s -k -o "$kept/$1" "${@:2}" "$tmp/src" >>"$tmp/log" 2>&1
}

# The guests of the recording at hand, as options of the import: g1, g2... are started by ptbox's functions.
guest_options() {
	local g pid
	mkdir -p "$tmp/mount"
	options=()
	for g in g1 g2; do
		[ -e "$g.pid" ] || continue
		pid=$(cat "$g.pid")
		ln -sfn "$PWD/$g.symfs" "$tmp/mount/$pid"
		options+=(--guest "$g/guest.data,$pid")
	done
	[ ${#options[@]} -eq 0 ] || options+=(--guestmount "$tmp/mount")
}

# KVM's own offsets are those that the decoder solved.
clocks() { # NAME
	local g offset
	[ "$(wc -l <"$tmp/clocks")" -gt 1 ] || return # a trace without time has none
	for g in g1 g2; do
		[ -e "$g.tsc" ] || continue
		while read -r offset; do
			# shellcheck disable=SC2016
			check "$1: $g's offset $offset is one of $(awk 'NR > 1 { printf "%s ", $3 }' "$tmp/clocks")" \
				awk -v o="$offset" '$3 == o { found = 1 } END { exit !found }' "$tmp/clocks"
		done < <(awk '$2 == "tsc-offset" { print $3 }' "$g.tsc")
	done
}

example() { # NAME exact|partly:MOST|lost
	local name=$1 held=$2 data id truth cpu status errors=0 all=0 expected=0 invented missing
	cd "$kept/$name" || return
	data=pt.data
	[ -e "$data" ] || data=$(find . -maxdepth 1 -name '*.data' | head -n 1)
	guest_options
	# perf's place for it, whether a recording has its build id or not; host and guests run the same
	# kernel.
	id=$(readelf -n vdso.so 2>/dev/null | sed -n 's/.*Build ID: //p')
	rm -rf symfs/.debug
	if [ -n "$id" ]; then
		mkdir -p "symfs/.debug/[vdso]/$id" "symfs/.debug/.build-id/${id:0:2}"
		cp vdso.so "symfs/.debug/[vdso]/$id/vdso"
		ln -sfn "../../[vdso]/$id" "symfs/.debug/.build-id/${id:0:2}/${id:2}"
	fi
	"$PT_BIN/pt-capture" import -q --symfs symfs "${options[@]}" -o "$tmp/c.ptc" "$data" 2>"$tmp/err"
	status=$?
	check "$name: import: status $status, $(head -n 2 "$tmp/err")" test "$status" -eq 0 -o "$status" -eq 3
	"$PT_BIN/pt-decode" --guest-code --text -F cpu,from,to "$tmp/c.ptc" >"$tmp/text" 2>"$tmp/err"
	status=$?
	errors=$(grep -c '^#' "$tmp/text")
	for truth in truth-cpu*.bin; do
		cpu=${truth#truth-cpu}
		cpu=${cpu%.bin}
		"$tmp/truthdump" -p "$truth" >"$tmp/expected"
		# A trace by thread has no CPU.
		awk -v cpu="$cpu" '$1 == cpu || $1 == -1 { print $2, $3 }' "$tmp/text" >"$tmp/got"
		changed patience "$tmp/expected" "$tmp/got"
		# Where much is missing, of what is alike the wrong one may be taken for it.
		[ "$invented" -eq 0 ] || changed minimal "$tmp/expected" "$tmp/got"
		all=$((all + missing)) expected=$((expected + $(wc -l <"$tmp/expected")))
		echo "$name: CPU $cpu: $(wc -l <"$tmp/expected") branches, $missing missing, $invented invented; $errors errors"
		check "$name: CPU $cpu: $invented branches that were not" test "$invented" -eq 0
	done
	if [ "$held" = exact ]; then
		check "$name: $all branches missing" test "$all" -eq 0
		check "$name: errors: $(grep -m 2 '^#' "$tmp/text")" test "$errors" -eq 0
	else
		if [ "$held" = lost ]; then
			check "$name: errors: $(grep '^#' "$tmp/text" | grep -v -m 2 ' lost: ')" test "$errors" -eq "$(grep -c '^# .* lost: ' "$tmp/text")"
		else
			check "$name: $all of $expected branches missing" test "$((all * 1000000))" -le "$((expected * ${held#partly:}))"
		fi
		check "$name: nothing is said of what is missing" test "$all" -eq 0 -o "$errors" -gt 0
	fi
	"$PT_BIN/pt-decode" vm-clock "$tmp/c.ptc" >"$tmp/clocks" 2>/dev/null && clocks "$name"
	cd "$OLDPWD" || exit 1
	rm -rf "$tmp/mount" "$tmp/c.ptc" "$tmp/text"
	[ -n "${KEPT:-}" ] || rm -rf "${kept:?}/$name"
}

while read -r name held options_of_box; do
	[ -z "${wanted[*]}" ] || [[ " ${wanted[*]} " == *" $name "* ]] || continue
	# shellcheck disable=SC2086
	if record "$name" $options_of_box; then
		example "$name" "$held"
	elif grep -q 'not installed here' "$tmp/log"; then
		skip 1 "$name: $(tail -n 1 "$tmp/log")"
	else
		fail "$name: not recorded: $(tail -n 1 "$tmp/log")"
	fi
done <<<"$examples"
