# pt-load and what goes wrong: killed at any change of a file, a disk that is full from any write on, a file
# that may not grow. The database is afterwards as it was, or has the whole trace; and it can be loaded into.
source tests/common.bash
make_records=$PT_BUILD/tests/tools/mkrecords
"$make_records" --runs 3000 --seed 1 >"$tmp/one" 2>/dev/null || fail "mkrecords"
"$make_records" --runs 12000 --calls 3000 --paths 1000 --seed 2 >"$tmp/two" 2>/dev/null
"$PT_BIN/pt-load" -q "$tmp/before" "$tmp/one"
cp "$tmp/before" "$tmp/after" && "$PT_BIN/pt-load" -q "$tmp/after" "$tmp/two"
# Load times differ, and nothing else does.
content() { sqlite3 "$1" "UPDATE trace SET load_time = 0; PRAGMA integrity_check" .dump 2>&1 | sha256sum; }
as_copy() { cp "$1" "$tmp/copy" && { [ ! -e "$1-journal" ] || cp "$1-journal" "$tmp/copy-journal"; } && content "$tmp/copy"; }
before=$(as_copy "$tmp/before") after=$(as_copy "$tmp/after")
"$PT_BIN/pt-load" -q "$tmp/alone" "$tmp/two"
alone=$(as_copy "$tmp/alone")
check "the two differ" test "$before" != "$after"

"${CC:-cc}" -shared -fPIC -O1 -o "$tmp/fault.so" tests/cli/fault.c || fail "fault.c"
# load_with HOW AT DB: pt-load of the second trace into DB with that fault. Its exit status.
load_with() {
	FAULT_HOW=$1 FAULT_AT=$2 FAULT_COUNT=$tmp/count LD_PRELOAD=$tmp/fault.so \
		ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0:detect_leaks=0 \
		"$PT_BIN/pt-load" -q "$3" "$tmp/two" 2>"$tmp/err"
}
# check_state WHAT STATUS DB: what is in DB after a load that ended with STATUS.
check_state() {
	local got
	[ ! -e "$3" ] || got=$(as_copy "$3")
	case $2 in
	0 | 3) check "$1: loaded, but not whole" test "${got:-}" = "$4" ;;
	*)
		if [ "$2" -gt 128 ] && [ "${got:-}" = "$4" ]; then
			pass "$1"
		else
			check "$1: changed" test "${got:-}" = "$5"
		fi
		;;
	esac
}
for where in existing fresh; do
	rm -f "$tmp"/db*
	[ $where = fresh ] || cp "$tmp/before" "$tmp/db"
	load_with none 0 "$tmp/db"
	changes=$(cat "$tmp/count")
	check "$where: there are changes to fail ($changes)" test "$changes" -gt 20
	[ $where = fresh ] && whole=$alone was="" || whole=$after was=$before
	check_state "$where, no fault" 0 "$tmp/db" "$whole" "$was"
	for how in kill full; do
		# All of the first and the last changes, where files appear, are flushed and renamed; some of
		# the middle.
		for at in $(seq 1 4) $(seq 10 $((changes / 6 + 1)) $((changes - 6))) $(seq $((changes - 6)) $((changes + 1))); do
			rm -f "$tmp"/db* "$tmp"/copy*
			[ $where = fresh ] || cp "$tmp/before" "$tmp/db"
			load_with $how "$at" "$tmp/db" 2>/dev/null
			status=$?
			what="$where, $how at change $at of $changes (status $status)"
			check_state "$what" $status "$tmp/db" "$whole" "$was"
			[ $how = kill ] || [ $status -ne 1 ] || check "$what: says why" grep -q 'pt-load: ' "$tmp/err"
			# Without room SQLite cannot always take back what it wrote: the journal remains, and
			# is played back next.
			[ $how = kill ] || check "$what: nothing is left over" test -z "$(find "$tmp" -name 'db?*' ! -name db-journal)"
		done
		# A killed one may leave something: the next one copes with it.
		if [ $how = kill ]; then
			rm -f "$tmp"/db*
			[ $where = fresh ] || cp "$tmp/before" "$tmp/db"
			load_with kill $((changes / 2)) "$tmp/db" 2>/dev/null
			"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/two" 2>/dev/null
			check_state "$where: a load after a killed one" 0 "$tmp/db" "$whole" "$was"
			check "$where: what the killed one left is gone" test -z "$(find "$tmp" -name 'db?*')"
		fi
	done
done

# A file that may not grow beyond that many KiB.
for kib in 1 64 200; do
	for where in existing fresh; do
		rm -f "$tmp"/db* "$tmp"/copy*
		was=
		if [ $where = existing ]; then
			cp "$tmp/before" "$tmp/db" && was=$before
		fi
		(ulimit -f $kib && "$PT_BIN/pt-load" -q "$tmp/db" "$tmp/two") 2>"$tmp/err"
		status=$?
		check "limit of $kib KiB, $where: fails (status $status)" test $status -eq 1
		check "limit of $kib KiB, $where: says why" grep -qE 'too large|full|space' "$tmp/err"
		check_state "limit of $kib KiB, $where" $status "$tmp/db" "" "$was"
		check "limit of $kib KiB, $where: nothing is left over" test -z "$(find "$tmp" -name 'db?*')"
	done
done

# A file system that is really full, where one may be mounted.
cat >"$tmp/full.sh" <<-END
	mount -t tmpfs -o size=$(($(stat -c %s "$tmp/before") / 1024 + 200))k none "$tmp/disk" || exit 99
	[ "\$1" = fresh ] || cp "$tmp/before" "$tmp/disk/db" || exit 98
	"$PT_BIN/pt-load" -q "$tmp/disk/db" "$tmp/two" 2>"$tmp/err"
	echo \$? >"$tmp/status"
	cp "$tmp"/disk/* "$tmp/out"
	true
END
mkdir "$tmp/disk"
if unshare -rm true 2>/dev/null && unshare -rm sh -c "mount -t tmpfs none '$tmp/disk'" 2>/dev/null; then
	for where in existing fresh; do
		rm -rf "$tmp/out" "$tmp"/copy* && mkdir "$tmp/out"
		unshare -rm sh "$tmp/full.sh" $where 2>/dev/null
		[ $where = fresh ] && was="" || was=$before
		check "full disk, $where: fails" test "$(cat "$tmp/status")" = 1
		check "full disk, $where: says why" grep -qE 'full|space' "$tmp/err"
		check_state "full disk, $where" 1 "$tmp/out/db" "" "$was"
	done
else
	skip 6 "full disk: a tmpfs cannot be mounted here"
fi

# Progress is for a terminal only.
"$PT_BIN/pt-load" "$tmp/quiet" "$tmp/two" 2>"$tmp/err"
check "no progress in a file" test "$(grep -c $'\r' "$tmp/err")" = 0
if command -v script >/dev/null; then
	script -qec "\"$PT_BIN/pt-load\" \"$tmp/tty\" \"$tmp/two\"" "$tmp/typescript" >/dev/null
	check "progress on a terminal" grep -q 'MB read' "$tmp/typescript"
	script -qec "\"$PT_BIN/pt-load\" -q \"$tmp/tty2\" \"$tmp/two\"" "$tmp/typescript" >/dev/null
	check "none with -q" test "$(grep -c 'MB read' "$tmp/typescript")" = 0
else
	skip 2 "progress on a terminal: there is no script(1)"
fi
