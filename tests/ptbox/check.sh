#!/usr/bin/env bash
# pt-capture check in the emulated PC, as root, as a user, as the root of a user namespace: each line against
# what the kernel then does, and the remedies, followed.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
programs setpriv
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && chmod 755 /host /host/bin /host/bin/* && mkdir /tmp/u && chmod 777 /tmp/u
K=/proc/sys/kernel
user() { /usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups "$@"; }
# asked NAME: check's answers, to root and to a user
asked() {
	pt-capture check >root.$1 2>&1
	echo "status $?" >>root.$1
	user pt-capture check >user.$1 2>&1
	echo "status $?" >>user.$1
}
# tried NAME: what a user can do: "user 0", with the status; 3: permitted, but the buffers, which are small,
# were full
tried() {
	for how in "user --all-user -- true" "kernel -k -- true" "all -a -d 0.01"; do
		set -- $1 $how
		name=$1 what=$2
		shift 2
		user pt-capture -q -m 64K,64K -z -7 -o /tmp/u/c.ptc "$@" >/tmp/u/log 2>&1
		echo "$what $? $(head -n 1 /tmp/u/log)" >>tried.$name
		rm -f /tmp/u/c.ptc
		set -- $name
	done
}
asked first
modprobe msr && modprobe kvm_intel
for paranoid in -1 0 1 2 3; do
	echo $paranoid >$K/perf_event_paranoid
	asked paranoid$paranoid
	tried paranoid$paranoid
done
echo 2 >$K/perf_event_paranoid
unshare -U -r pt-capture check >namespace.paranoid2 2>&1
unshare -U -r pt-capture -q -a -d 0.01 -o /tmp/u/n.ptc >namespace.tried 2>&1
echo "all $?" >>namespace.tried
echo 0 >$K/perf_event_mlock_kb
ulimit -l 0
asked nomemory
user pt-capture -q --all-user -o /tmp/u/c.ptc -- true >/tmp/u/log 2>&1
echo "user $? $(head -n 1 /tmp/u/log)" >tried.nomemory
rm -f /tmp/u/c.ptc
echo 516 >$K/perf_event_mlock_kb
user pt-capture -q --all-user -o /tmp/u/c.ptc -- true >/tmp/u/log 2>&1
echo "user $? $(head -n 1 /tmp/u/log)" >tried.memory
echo 2 >$K/kptr_restrict
asked kptr2
echo 1 >$K/kptr_restrict
asked kptr1
umount /sys/kernel/debug/tracing 2>/dev/null
umount /sys/kernel/debug && asked nodebugfs
mount -t debugfs none /sys/kernel/debug && asked debugfs
mount -t securityfs none /sys/kernel/security 2>/dev/null
echo confidentiality >/sys/kernel/security/lockdown && asked lockdown
ls >/dev/null
EOS
box -m 512
# line WHO WHEN WHAT: the answer, and what was seen
line() { grep -m 1 "^[a-zNO]* *$3 " "$out/$1.$2" | sed 's/  */ /g'; }
is() { # WHO WHEN ANSWER WHAT [WORDS of the remedy]
	check "$1, $2: not $3: $(line "$1" "$2" "$4")" test "$(line "$1" "$2" "$4" | cut -d' ' -f1)" = "$3"
	[ $# -lt 5 ] || check "$1, $2: $4: the remedy: $(grep -A 1 "^[a-zNO]* *$4 " "$out/$1.$2" | tail -n 1)" \
		grep -qF -- "$5" <(grep -A 1 "^[a-zNO]* *$4 " "$out/$1.$2" | tail -n 1)
}
tried() { awk -v what="$2" '$1 == what { print $2 == 3 ? 0 : $2 }' "$out/tried.$1"; }
for who in root user; do
	is $who first yes "CPU has Processor Trace"
	is $who first yes "TSC is invariant"
	is $who first yes "perf's clock is the TSC"
	is $who first yes "kernel has the intel_pt driver"
	is $who first unknown "PT while VMX is on" "modprobe msr"
	is $who paranoid2 yes "KVM lets the host trace guests"
	check "$who: it works: $(tail -n 1 "$out/$who.first")" grep -qx 'status 0' "$out/$who.first"
done
is root first limited "guests' TSC offsets (debugfs)" "modprobe kvm_intel"
is root first limited "KVM's tracepoints" "modprobe kvm_intel"
is root paranoid2 yes "PT while VMX is on"
is root paranoid2 yes "guests' TSC offsets (debugfs)"
is root paranoid2 yes "KVM's tracepoints"
is root paranoid2 yes "kernel's code"
is user paranoid2 unknown "PT while VMX is on" "as root"
is user paranoid2 unknown "guests' TSC offsets (debugfs)" "as root"
is user paranoid2 unknown "kernel's code" "as root"
# What it says of permissions is what the kernel does.
for p in -1 0 1 2 3; do
	is root paranoid$p yes "permission to trace"
	answer=$(line user paranoid$p "permission to trace")
	status=$(tail -n 1 "$out/user.paranoid$p")
	echo "paranoid $p: ${answer:0:100}; a user's captures of user space, the kernel, all: $(cut -d' ' -f2 "$out/tried.paranoid$p" | tr '\n' ' ')"
	case "$(tried paranoid$p user) $(tried paranoid$p kernel) $(tried paranoid$p all)" in
	"0 0 0") check "paranoid $p: $answer" grep -q '^yes .*\(everything\|whole CPUs\)' <<<"$answer" ;;
	"0 0 1") check "paranoid $p: $answer" grep -q '^limited .*your own programs, with the kernel' <<<"$answer" ;;
	"0 1 1") check "paranoid $p: $answer" grep -q '^limited .*your own programs, user space only' <<<"$answer" ;;
	"1 1 1") check "paranoid $p: $answer $status" test "${answer%% *}" = NO -a "$status" = "status 1" ;;
	*) fail "paranoid $p: $(cat "$out/tried.paranoid$p")" ;;
	esac
done
is user paranoid3 NO "permission to trace" "sysctl kernel.perf_event_paranoid=2"
is user paranoid2 limited "permission to trace" "kernel.perf_event_paranoid=-1"
is namespace paranoid2 limited "permission to trace" "a container only"
check "root of a user namespace: $(cat "$out/namespace.tried")" grep -qx 'all 1' "$out/namespace.tried"
# Memory for buffers: none, and by the remedy.
is user nomemory limited "memory for buffers" "perf_event_mlock_kb"
is root nomemory yes "memory for buffers"
check "no memory: $(cat "$out/tried.nomemory")" test "$(tried nomemory user)" -eq 1
check "perf_event_mlock_kb: $(cat "$out/tried.memory")" test "$(tried memory user)" -eq 0
# Symbols: the kernel shows them to users where kptr_restrict is 0 and perf_event_paranoid at most 1.
is user paranoid1 yes "kernel's symbols"
is user paranoid2 unknown "kernel's symbols" "as root"
is root kptr2 limited "kernel's symbols" "kptr_restrict=1"
is root kptr1 yes "kernel's symbols"
is root nodebugfs limited "guests' TSC offsets (debugfs)" "mount -t debugfs"
is root debugfs yes "guests' TSC offsets (debugfs)"
if [ -e "$out/root.lockdown" ]; then
	is root lockdown limited "kernel's code" "not locked down"
else
	skip 2 "no lockdown in this kernel"
fi
