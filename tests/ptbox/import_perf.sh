#!/usr/bin/env bash
# pt-capture import of what Debian's perf records with Processor Trace in ptbox: a thread's buffer,
# compression and tracepoints, pipe mode, a buffer that is too small, snapshots, samples with AUX data. perf
# is the judge; of a pipe without the vdso's code, where both end at different places, it is the machine's log, and of a buffer that is
# too small it is both.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
with_perf
programs ls dash seq sort gzip
capture=$PT_BIN/pt-capture decode=$PT_BIN/pt-decode
cat >"$host/run.sh" <<'END'
#!/bin/sh
cd /host/out && vmctl vdso vdso.so
# perf 7.2 asks the kernel for build ids of files as they are mapped, which the vdso is not: it has none then.
record() { perf record -N --no-bpf-event --no-buildid-mmap --buildid-all "$@"; }
record -o thread.data --per-thread -e intel_pt/cyc/u -- /usr/bin/ls -la / >/dev/null
record -o sched.data -z -e intel_pt/cyc/u -e sched:sched_switch -e sched:sched_process_exec -- /usr/bin/ls / >/dev/null
record -o - -e intel_pt/cyc,mtc_period=6/u -- /usr/bin/ls -la / 2>pipe.err | cat >pipe.data
record -o small.data -m,4 -e intel_pt/cyc,psb_period=2/u -- dash -c 'seq 1 99 | sort -rn | gzip -c >/dev/null; seq 1 99 | sort >/dev/null'
record -o snapshot.data -S32768 -m,32 -e intel_pt/cyc,psb_period=0/u -- dash -c 'for i in 1 2; do seq 1 99 | sort -rn | gzip -c >/dev/null; kill -USR2 $PPID; sleep 0.005; done'
record -o sample.data --aux-sample=4096 -e '{intel_pt/cyc/u,cpu-clock:u}' -c 50000 -- dash -c 'seq 1 99 | sort -rn | gzip -c >/dev/null'
END
box -k
# Where perf and we look for the vdso.
id=$(readelf -n "$out/vdso.so" | sed -n 's/.*Build ID: //p')
mkdir -p "$out/symfs/.debug/[vdso]/$id" "$out/symfs/.debug/.build-id/${id:0:2}"
cp "$out/vdso.so" "$out/symfs/.debug/[vdso]/$id/vdso"
ln -s "../../[vdso]/$id" "$out/symfs/.debug/.build-id/${id:0:2}/${id:2}"

# Of a TIP.PGE of which only the first bytes are there, for the next ones were lost, perf reads zeros in place of the others: in
# $tmp/script is a begin at an address where nothing ran. (Such a packet has one byte and as many as its IPBytes say: SDM, "Target IP
# Packet".) Where the n-th loss is within a packet, that begin is taken out.
without_cut_begins() {
	local at cut=
	while read -r at; do
		cut+=$(awk -v at="$(printf %06x "$at")" '($1 "") >= at { print(($1 "") > at); exit }' "$tmp/packets")
	done < <(sed -n 's/^# error .* aux_offset \([0-9]*\) .* lost: AUX data was lost.*/\1/p' "$tmp/text")
	echo "small: losses within a packet (1): $cut"
	awk -v cut="$cut" '
		/instruction trace error/ && substr(cut, ++n, 1) == 1 && split(held, f) == 4 && f[2] == 0 { held = "" }
		{ if (held != "") print held; held = $0 }
		END { print held }' "$tmp/script" >"$tmp/whole"
	mv "$tmp/whole" "$tmp/script"
}

for t in thread sched pipe small snapshot sample; do
	options=(--symfs "$out/symfs")
	# A pipe has no build ids at its end: perf has no vdso then.
	[ $t != pipe ] || options+=(--buildid-dir "$tmp/none")
	"$capture" import "$out/$t.data" "${options[@]}" -o "$tmp/c.ptc" 2>"$tmp/notes"
	succeeded $? "$t: import: $(head -n 2 "$tmp/notes")"
	[ $t = pipe ] || check "$t: nothing is missing: $(head -n 2 "$tmp/notes")" test ! -s "$tmp/notes"
	"$decode" --text -F tid,from,to "$tmp/c.ptc" 2>"$tmp/err" >"$tmp/text"
	check "$t: there are branches: $(head -n 2 "$tmp/err")" test "$(grep -vc '^#' "$tmp/text")" -gt 5000
	most=1000000000
	case $t in
	pipe) # its configuration is its own, so the log knows what is its
		# After code that it has not, perf goes on with the second branch that it knows, or, when it was left in between, with one
		# after that.
		pieces "$t" 1 "$tmp/c.ptc" u
		continue
		;;
	small) # so is its
		pieces "$t" 1 "$tmp/c.ptc" u
		"$decode" --packets "$tmp/c.ptc" 2>"$tmp/err" >"$tmp/packets"
		# perf gives room back to the byte. With less than a page free the driver may find the page that is written to be the one
		# to stop before, and what perf has not read is overwritten (capture/record/ring.h, hw_ring_aux_done()). No record says
		# so: the data that perf stores next begins later. perf takes it for the continuation, so it is no judge from there on.
		overwritten=$(awk '/AUX data is missing from the container/ { print n + 0; exit } !/^#/ { n++ }' "$tmp/text")
		if [ -n "$overwritten" ]; then
			echo "small: with perf up to where data was overwritten: $overwritten branches"
			most=$overwritten
		fi
		;;
	esac
	grep -v '^#' "$tmp/text" | head -n "$most" | sort -s -n -k1,1 >"$tmp/ours"
	# A line without a branch is a loss that perf shows.
	perf script -i "$out/$t.data" --symfs "$out/symfs" --itrace=be -F tid,ip,addr 2>/dev/null >"$tmp/script"
	[ $t != small ] || without_cut_begins
	awk 'NF == 4 { print $1, $2, $4 }' "$tmp/script" | head -n "$most" | sort -s -n -k1,1 >"$tmp/perf"
	same "$t: branches" "$tmp/perf" "$tmp/ours"
done
"$capture" import -q "$out/sched.data" -o "$tmp/c.ptc"
"$capture" info "$tmp/c.ptc" >"$tmp/info"
check "formats of the two tracepoints: $(grep FORMAT "$tmp/info")" grep -qE '^  FORMAT +2,' "$tmp/info"
"$capture" import -q "$out/small.data" -o "$tmp/c.ptc"
check "losses are reported" grep -q 'truncated' <("$capture" info "$tmp/c.ptc")
