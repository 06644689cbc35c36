#!/usr/bin/env bash
# Nothing that a trace names is executed or written to: recordings whose programs, mapped files, build ids,
# kernel modules, host and command are the names of FIFOs, of programs, of files that everybody may write, or
# shell commands; all that reads recordings, under strace: no program is started, nothing but the output is
# opened for writing, made, renamed or removed, no FIFO is opened at all.
# timeout: 200
# shellcheck disable=SC2016 # names that look like commands
source tests/common.bash
capture=$PT_BIN/pt-capture decode=$PT_BIN/pt-decode
if ! strace -f -o "$tmp/log" true 2>/dev/null; then
	skip 1 "strace cannot be used here"
	exit 0
fi
export ASAN_OPTIONS=detect_leaks=0 # which cannot look at a program that is traced
traced=$tmp/traced root=$tmp/root home=$tmp/home out=$tmp/out
mkdir -p "$traced" "$root" "$home/.debug" "$out"

# A program for each name; what they are is put in their place after the capture.
cat >"$tmp/p.s" <<'END'
.globl _start
_start:
	mov $3, %ecx
1:	loop 1b
	mov $60, %eax
	xor %edi, %edi
	syscall
END
names=(fifo fifo.ko script writable folder '$(touch mark)' '`touch mark`' ';touch mark;#' '| touch mark' '-o mark' '../traced/dots' $'new\nline' '%s%n%p')
run=()
for name in "${names[@]}"; do
	gcc -nostdlib -static -Wl,--build-id=0x"$(printf %s "$name" | sha1sum | cut -c 1-40)" -o "$traced/$name" "$tmp/p.s" || exit 1
	run+=("$traced/$name")
done
(cd "$tmp" && "$capture" -q --engine step -o "$tmp/c.ptc" -- sh -c 'for p; do "$p"; done' sh "${run[@]}")
succeeded $? "capture"
"$capture" export -q --perf-data "$tmp/plain.data" "$tmp/c.ptc"
succeeded $? "export"
for name in "${names[@]}"; do
	rm "$traced/$name"
	printf '#!/bin/sh\ntouch %s/mark\n' "$tmp" >"$traced/$name"
	chmod 777 "$traced/$name"
done
rm "$traced/fifo" "$traced/fifo.ko" "$traced/folder"
mkfifo "$traced/fifo" "$traced/fifo.ko"
mkdir "$traced/folder"
echo untouched >"$traced/writable"
chmod 666 "$traced/writable"
touch -d 2001-01-01 "$traced/writable" "$traced/script"

# The same again with a kernel: modules that are FIFOs, programs and commands, a host and a release that are
# paths.
python3 - "$tmp/plain.data" "$tmp/kernel.data" "$traced" <<'END'
import struct, sys

data = bytearray(open(sys.argv[1], "rb").read())
traced = sys.argv[3].encode()
_, _, entry, attrs, attrs_bytes, start, size = struct.unpack_from("<8sQQQQQQ", data)
assert data[:8] == b"PERFILE2"
kinds, places = 0, [24]  # where it says where something lies: the events, their ids
for at in range(attrs, attrs + attrs_bytes, entry):
    kinds = struct.unpack_from("<Q", data, at + 24)[0]
    places.append(at + entry - 16)
    data[at + 40] &= ~(1 << 5)  # exclude_kernel: there is code of a kernel to be looked for
tail = b"\0" * 8 * sum(kinds >> bit & 1 for bit in (1, 2, 6, 9, 7, 16))  # TID TIME ID STREAM_ID CPU IDENTIFIER

def mapped(name, start, bytes_, offset=0):
    name = name + b"\0" * (8 - len(name) % 8)
    body = struct.pack("<iiQQQ", -1, 0, start, bytes_, offset) + name + tail
    return struct.pack("<IHH", 1, 1, 8 + len(body)) + body

text = 0xffffffff81000000
more = mapped(b"[kernel.kallsyms]_text", text, 1 << 24, text)
modules = [b"/fifo.ko", b"/script.ko", b"/writable.ko", b"/../traced/fifo.ko", b"/$(touch mark).ko", b"/fifo.ko.xz"]
for n, name in enumerate(modules):
    more += mapped(traced + name, 0xffffffffc0000000 + n * 0x10000, 0x1000)
more += mapped(b"[fifo]", 0xffffffffc1000000, 0x1000)
for at in places:
    place = struct.unpack_from("<Q", data, at)[0]
    struct.pack_into("<Q", data, at, place + (len(more) if place >= start else 0))
data[start:start] = more
struct.pack_into("<Q", data, 48, size + len(more))
# What lies after it has moved: a section each of the features that there are.
features = sum(bin(word).count("1") for word in struct.unpack_from("<4Q", data, 72))
table = start + size + len(more)
for n in range(features):
    at, bytes_ = struct.unpack_from("<QQ", data, table + 16 * n)
    struct.pack_into("<QQ", data, table + 16 * n, at + len(more), bytes_)
open(sys.argv[2], "wb").write(data)
END
succeeded $? "a recording with a kernel"
printf '%s\n' 'ffffffff81000000 T _text' 'ffffffff81000100 t idle' >"$tmp/kallsyms"

# The same names below a root, and in its build-id cache, which are somebody else's: all of them FIFOs.
mkdir -p "$root$traced" "$root/lib/modules/$(uname -r)"
for name in "${names[@]}"; do
	[[ $name == */* ]] || mkfifo "$root$traced/$name"
	id=$(printf %s "$name" | sha1sum | cut -c 1-40)
	for cache in "$root/.debug" "$home/.debug"; do
		mkdir -p "$cache/.build-id/${id:0:2}/${id:2}"
		mkfifo "$cache/.build-id/${id:0:2}/${id:2}/elf"
	done
done
mkfifo "$root/lib/modules/$(uname -r)/fifo.ko"
find "$tmp" -type p | sort >"$tmp/fifos"

cat >"$tmp/judge.py" <<'END'
"""judge.py OUT FIFOS MAY-RUN [OUTPUT]: what strace saw on standard input, a line each call that was not to be; then how many opens."""
import os, re, sys

out, fifos, may_run = sys.argv[1], set(open(sys.argv[2]).read().split("\n")) - {""}, sys.argv[3]
makes = re.compile(r"(unlink|rename|link|symlink|mkdir|rmdir|mknod|chmod|fchmodat|chown|lchown|fchownat|truncate|utime|setxattr|lsetxattr"
                   r"|mount|umount|chroot|creat|connect|bind)(at|at2|64|imensat|s|nsat|_exclusive)?$")
opens = started = 0
for line in sys.stdin:
    call = re.match(r"(?:\d+ +)?(\w+)\((.*)", line)
    if not call:
        continue
    name, rest = call.groups()
    paths = [p.encode().decode("unicode_escape") for p in re.findall(r'"((?:[^"\\]|\\.)*)"', rest)]
    ours = lambda p: os.path.normpath(os.path.join(os.getcwd(), p)).startswith(out + "/") or p == out
    if name in ("open", "openat", "openat2"):
        opens += 1
        # O_PATH only looks: "the file itself is not opened" (open(2)).
        if paths and os.path.normpath(paths[0]) in fifos and "O_PATH" not in rest:
            print("a FIFO is opened: " + line, end="")
        if re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE", rest) and not (ours(paths[0]) or paths[0] == "/dev/null"):
            print("opened for writing: " + line, end="")
    elif name in ("execve", "execveat"):
        started += 1
        if started > 1 and not (may_run and paths[0].endswith("/" + may_run)):
            print("executed: " + line, end="")
    elif name in ("clone", "clone3", "fork", "vfork"):
        if "CLONE_THREAD" not in rest and not may_run:
            print("a process: " + line, end="")
    elif makes.match(name) and not all(ours(p) or p.startswith("/proc/self/fd/") for p in paths[:2]):
        print("changed: " + line, end="")
sys.exit(0 if opens and started else "nothing was seen")
END
# watched MAY-RUN COMMAND...: from an input on standard input, under strace
watched() {
	local status
	(cd "$out" && HOME=$home TMPDIR=$out timeout 300 strace -f -e trace=%file,%process,%network -s 4096 -o "$tmp/log" "${@:2}" >"$tmp/stdout" 2>"$tmp/err")
	status=$?
	(cd "$out" && python3 "$tmp/judge.py" "$out" "$tmp/fifos" "$1" <"$tmp/log") >"$tmp/bad" 2>&1
	succeeded $? "${*:2}: $(cat "$tmp/bad")"
	check "${*:2}: $(head -n 3 "$tmp/bad" | cut -c 1-200)" test ! -s "$tmp/bad"
	check "${*:2}: exit status $status: $(head -n 2 "$tmp/err")" test $status -eq 0 -o $status -eq 3
}
# It would be seen.
(cd "$out" && strace -f -e trace=%file,%process,%network -o "$tmp/log" sh -c "cat /dev/null >>'$traced/writable'; : <>'$traced/fifo'" &&
	python3 "$tmp/judge.py" "$out" "$tmp/fifos" "" <"$tmp/log" >"$tmp/bad")
for what in 'a process' executed 'opened for writing' 'a FIFO'; do
	check "the judge sees: $what" grep -q "^$what" "$tmp/bad"
done

for data in plain kernel; do
	watched "" "$capture" import --kallsyms "$tmp/kallsyms" -o "$out/$data.ptc" "$tmp/$data.data"
	watched "" "$capture" import --symfs "$root" --kallsyms "$tmp/kallsyms" -o "$out/$data.symfs.ptc" "$tmp/$data.data"
	watched "" "$capture" import --modules "$root" --kallsyms "$tmp/kallsyms" -o "$out/$data.modules.ptc" - <"$tmp/$data.data"
done
check "modules were looked for: $(cat "$tmp/err")" grep -q 'fifo.ko' "$tmp/log"
# The container as it was captured has all code and names, the imported one names alone.
cp "$tmp/c.ptc" "$out"
for name in c kernel; do
	watched "" "$capture" info "$out/$name.ptc"
	watched "" "$capture" trim --time +0.. -o "$out/$name.trim" "$out/$name.ptc"
	watched pt-decode "$capture" trim --used-code -o "$out/$name.used" "$out/$name.ptc"
	watched "" "$capture" export --perf-data "$out/$name.data" "$out/$name.ptc"
	watched "" "$capture" merge --guest-kallsyms "7:$tmp/kallsyms" -o "$out/$name.merged" "$out/$name.ptc"
	watched "" "$decode" --text -F comm,from,to "$out/$name.ptc"
	watched "" "$decode" -o "$out/$name.ptr" "$out/$name.ptc"
	watched "" "$PT_BIN/pt-load" -q "$out/$name.db" "$out/$name.ptr"
	watched "" "$PT_BIN/pt-query" "$out/$name.db"
	watched "" "$PT_BIN/pt-query" "$out/$name.db" threads --format csv
	watched "" "$PT_BIN/pt-query" "$out/$name.db" --format html
	watched "" "$PT_BIN/pt-query" "$out/$name.db" annotate
done
check "the programs are known by their names" grep -q 'touch mark' <(sqlite3 "$out/c.db" 'SELECT comm FROM comms')
check "marks: $(find "$tmp" -name mark)" test -z "$(find "$tmp" -name mark)"
check "what anybody may write is untouched" test "$(cat "$traced/writable")" = untouched -a "$(stat -c %Y "$traced/writable")" -eq "$(date -d 2001-01-01 +%s)"
