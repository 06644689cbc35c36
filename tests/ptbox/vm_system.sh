#!/usr/bin/env bash
# A guest with two vCPUs that is recorded as a whole from within (--sideband-only -a), with shell loops that ran
# before that: their code is known from the first branch on, and so is that of their children, which are gone by the
# time the guest's kernel has been read. Of one loop nothing can be read: it and its children, before their exec, run
# code that is not known, and that is what is said, of them: not another process's code, nor the next program's.
# timeout: 1500
source tests/common.bash
source tests/ptbox.bash
guest=$host/g1.guest
mkdir -p "$guest/bin"
host=$guest programs dash sort gzip seq sed
cp "$PT_BUILD/static/pt-capture" "$guest/bin/"
cat >"$guest/loop" <<'EOS'
#!/usr/bin/dash
vmctl touch "ready$1"
while :; do
	/usr/bin/seq 1 200 | /usr/bin/sort -rn | /usr/bin/gzip -c >/dev/null
	/usr/bin/seq 1 100 | /usr/bin/sed 's/1/x/g' >/dev/null
done
EOS
cat >"$guest/run.sh" <<'EOS'
#!/bin/sh
cd /host/out
dash /host/loop 1 &
dash /host/loop 2 &
dash /host/loop 3 &
hidden=$!
until [ -e /proc/$hidden/exe ] && [ "$(readlink /proc/$hidden/exe)" = /usr/bin/dash ]; do sleep 0.01; done
mount --bind /dev/null /proc/$hidden/maps
pt-capture --sideband-only -a -z -7 -m 1M -o guest.ptc 2>guest.err &
capture=$!
sleep 0.5
vmctl touch recorded
until vmctl wait done 0; do sleep 0.05; done
kill -INT $capture
wait $capture
echo $hidden >hidden
vmctl put guest.ptc <guest.ptc
vmctl put guest.err <guest.err
vmctl put hidden <hidden
kill -9 -1
EOS
one_guest
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && . /host/one_guest || exit 1
start_guest -c 2 -m 600
wait_for recorded
pt-capture --vm g1 -m 1M,32M -z -7 -e psb_period=3 -d 0.06 -o host.ptc 2>host.err || exit 1
touch g1/done
wait_for hidden
stop_guest
exit 0
EOS
box -c 2 -m 2000 -k
"$PT_BIN/pt-capture" merge -o "$tmp/merged.ptc" "$out/host.ptc" "$out/g1/guest.ptc" 2>"$tmp/err"
succeeded $? "merge: $(cat "$tmp/err")"
pieces "host and guest" 2 "$tmp/merged.ptc" uk
"$PT_BIN/pt-decode" -q "$tmp/merged.ptc" | "$PT_BIN/pt-load" -q "$tmp/db"
check "load: something was missing" test $? -eq 3
hidden=$(cat "$out/g1/hidden")
none() { # NAME WHERE: no error is like that
	local found
	found=$(sqlite3 -readonly "$tmp/db" "SELECT kind, message, pid, comm, ip_hex, count(*) FROM errors WHERE $2 GROUP BY 1, 2, 3 LIMIT 5")
	check "$1: $found" test -z "$found"
}
none "errors but for code that is not there" "kind <> 'no code'"
none "code that is missing after an exec" "message LIKE 'the container has no code%' AND comm NOT IN ('dash', '')"
# Of the loops themselves: their children, which are dash until their exec, have fewer branches.
none "code of a loop that is known" "message LIKE 'the container has no code%' AND pid <> $hidden
	AND pid IN (SELECT pid FROM slices WHERE comm = 'dash' GROUP BY 1 HAVING sum(branches) > 100000)"
check "code of the loop that is hidden is missing" test \
	"$(sqlite3 -readonly "$tmp/db" "SELECT count(*) FROM errors WHERE pid = $hidden")" -gt 10
check "both other loops have run" test \
	"$(sqlite3 -readonly "$tmp/db" "SELECT count(DISTINCT pid) FROM slices WHERE comm = 'dash' AND pid <> $hidden AND branches > 1000")" -ge 2
# Where the trace begins after the kernel's switch to a child of the hidden loop, only a record says that it runs. It
# has not been in user space, so its exec is still to come, however near.
cat >"$tmp/children.sql" <<EOS
SELECT pid, switched FROM (
	SELECT e.pid, e.first, max(s.tsc) AS switched FROM (
		SELECT pid, min(tsc) AS first FROM errors
		WHERE message LIKE 'the container has no code%' AND pid <> $hidden GROUP BY pid
	) e JOIN events s ON s.pid = e.pid AND s.tsc < e.first
	WHERE s.name = 'context_switch' AND json_extract(s.fields, '$.out') = 0
	GROUP BY e.pid
) WHERE first BETWEEN switched + 3000 AND switched + 190000 ORDER BY 2 LIMIT 8
EOS
begun=0
while IFS='|' read -r pid tsc; do
	"$PT_BIN/pt-decode" -q --time "$((tsc + 1000))tsc..$((tsc + 200000))tsc" "$tmp/merged.ptc" |
		"$PT_BIN/pt-load" -q --replace "$tmp/begun.db"
	found=$(sqlite3 -readonly "$tmp/begun.db" "SELECT DISTINCT comm FROM errors
		WHERE message LIKE 'the container has no code%' AND pid = $pid")
	check "from $tsc on, process $pid, whose errors are those of: $found" test "$found" = dash
	((++begun))
done < <(sqlite3 -readonly "$tmp/db" <"$tmp/children.sql")
check "children of the loop that is hidden: $begun" test "$begun" -ge 2
