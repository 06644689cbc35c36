#!/usr/bin/env python3
"""tests/big.py [--mb N] [--threads N] [--mappings N] [--call-paths N] - a lot of each, through the whole pipeline, with limits on memory.

  AUX data: a loop whose every branch has a TNT bit, N MB of them, with a PSB and a time every 64 KB. It is made while it
            is read, so it takes no disk.
  threads:  as many FORK and COMM records, of one process.
  mappings: as many MMAP2 records, of one process, of one file.
  call paths: as many, each one call deeper than the one before, for pt-load alone.
Each program's most memory is the kernel's word (wait4()). The databases are asked whether all is there.
"""
import argparse
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

sys.path.append("tests")
from check import check, sum_up  # noqa: E402

LOOP = 0x401000
BLOCK = 65536
PROGRAM = ".globl _start\n_start:\n1: dec %rcx\n jnz 1b\n hlt\n"
TIME_LIMIT = 3600  # seconds, of one pipeline
MB_MAX = {"pt-capture": 64, "pt-decode": 400, "pt-load": 400}  # AUX data: whatever their number
CALL_PATHS_MB = 256  # however many there are
PSB, PSBEND = b"\x02\x82" * 8, b"\x02\x23"


def address(opcode, ip):
    """A packet with an address of 48 bits, sign-extended (IPBytes 3)."""
    return bytes([opcode | 3 << 5]) + struct.pack("<Q", ip)[:6]


def tsc(n):
    return b"\x19" + struct.pack("<Q", n)[:7]


def aux_data(to, mb):
    """TNT of six taken branches, by the block."""
    n = 1000000
    to.write(PSB + tsc(n) + b"\x99\x01" + PSBEND + address(0x11, LOOP))
    for _ in range(mb << 20 >> 16):
        n += 100000
        head = PSB + tsc(n) + b"\x99\x01" + address(0x1d, LOOP) + PSBEND
        to.write(head + b"\xfe" * (BLOCK - len(head)))


def record(kind, misc, payload):
    return struct.pack("<IHH", kind, misc, 8 + len(payload)) + payload


def stamp(tid, when):
    """PERF_SAMPLE_TID | PERF_SAMPLE_TIME"""
    return struct.pack("<IIQ", 1, tid, when)


def thread_records(count):
    for tid in range(2, count + 2):
        yield record(7, 0, struct.pack("<IIIIQ", 1, 1, tid, 1, tid * 10) + stamp(1, tid * 10))
        yield record(3, 0, struct.pack("<II16s", 1, tid, b"t%d" % tid) + stamp(tid, tid * 10 + 1))


def mapping_records(count):
    for i in range(count):
        at = 0x7f0000000000 + i * 0x2000
        yield record(10, 2, struct.pack("<IIQQQIIQQII8s", 1, 1, at, 0x1000, 0, 8, 1, 1, 1, 5, 2, b"/lib/x")
                     + stamp(1, 10 + i))


class Pipeline:
    """import | decode | load; each one's most memory in MB, and the exit statuses."""

    def __init__(self, folder, options, feed=None):
        capture, decode, load = (os.path.join(os.environ["PT_BIN"], name) for name in MB_MAX)
        self.database = os.path.join(folder, "db")
        begin = time.monotonic()
        pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        # pylint: disable=consider-using-with
        first = subprocess.Popen([capture, "import", *options], stdin=subprocess.PIPE, **pipe)
        second = subprocess.Popen([decode, "-q"], stdin=first.stdout, **pipe)
        third = subprocess.Popen([load, "-q", self.database], stdin=second.stdout, stderr=subprocess.DEVNULL)
        watch = subprocess.Popen(["sleep", str(TIME_LIMIT)])
        first.stdout.close()
        second.stdout.close()
        try:
            if feed:
                feed(first.stdin)
            first.stdin.close()
        except BrokenPipeError:
            pass
        self.mb, self.status = {}, {}
        for name, p in zip(MB_MAX, (first, second, third)):
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            self.mb[name], self.status[name] = usage.ru_maxrss / 1024, p.returncode
        watch.kill()
        watch.wait()
        self.seconds = time.monotonic() - begin

    def ask(self, sql):
        db = sqlite3.connect(self.database)
        try:
            return db.execute(sql).fetchone()[0]
        finally:
            db.close()

    def judge(self, what, limits):
        print(f"{what}: {self.seconds:.0f} s; most memory: "
              + ", ".join(f"{name} {mb:.0f} MB" for name, mb in self.mb.items()))
        check(all(s in (0, 3) for s in self.status.values()), f"{what}: all end well", self.status)
        for name, limit in limits.items():
            check(self.mb[name] <= limit, f"{what}: {name}'s memory has a limit", f"{self.mb[name]:.0f} MB, not {limit}")


def test(folder, arguments):
    program = os.path.join(folder, "loop")
    with open(program + ".s", "w", encoding="ascii") as f:
        f.write(PROGRAM)
    subprocess.run(["cc", "-nostdlib", "-static", "-Wl,-Ttext=0x401000", "-Wl,--build-id=none", "-o", program,
                    program + ".s"], check=True)
    empty = os.path.join(folder, "empty.pt")
    with open(empty, "wb") as f:
        f.write(PSB + tsc(1000000) + b"\x99\x01" + PSBEND + address(0x11, LOOP) + b"\xfe" * 10)
    clock = ["--time-shift", "0", "--time-mult", "1", "--time-zero", "0"]
    if arguments.mb:
        run = Pipeline(folder, ["--raw", "-", "--elf", program], lambda to: aux_data(to, arguments.mb))
        what = f"{arguments.mb} MB of AUX data"
        run.judge(what, MB_MAX)
        blocks = arguments.mb << 20 >> 16
        bits = 6 * blocks * (BLOCK - len(PSB + tsc(0) + b"\x99\x01" + address(0x1d, 0) + PSBEND))
        got = run.ask("SELECT sum(branches) FROM trace")
        check(got is not None and abs(got - bits) <= 64, f"{what}: all branches are there", f"{got} of {bits}")
        os.unlink(run.database)
    for what, count, records, sql in (
            ("threads", arguments.threads, thread_records, "SELECT count(*) FROM thread"),
            ("mappings", arguments.mappings, mapping_records, "SELECT count(*) FROM trace")):
        if not count:
            continue
        path = os.path.join(folder, "sideband")
        with open(path, "wb") as f:
            for r in records(count):
                f.write(r)
        run = Pipeline(folder, ["--raw", empty, "--elf", program, "--sideband", path, "--sample-type", "0x6", *clock])
        text = f"{count} {what}"
        # 2 KB for each, beside what they need without any.
        run.judge(text, {name: limit + count * 2 // 1024 for name, limit in MB_MAX.items()})
        check(run.ask(sql) >= 1, f"{text}: the database is there", run.ask(sql))
        os.unlink(run.database)


def test_call_paths(folder, count):
    stream, database = os.path.join(folder, "stream"), os.path.join(folder, "db")
    with open(stream, "wb") as f:
        subprocess.run([os.path.join(os.environ["PT_BUILD"], "tests/tools/mkgrowth"), "ptr-calls", str(count)], stdout=f,
                       check=True)
    # pylint: disable=consider-using-with
    load = subprocess.Popen([os.path.join(os.environ["PT_BIN"], "pt-load"), "-q", database, stream])
    _, status, usage = os.wait4(load.pid, 0)
    load.returncode = os.waitstatus_to_exitcode(status)
    mb, what = usage.ru_maxrss / 1024, f"{count} call paths"
    print(f"{what}: most memory: pt-load {mb:.0f} MB")
    check(load.returncode == 0, f"{what}: it ends well", load.returncode)
    check(mb <= CALL_PATHS_MB, f"{what}: pt-load's memory has a limit", f"{mb:.0f} MB, not {CALL_PATHS_MB}")
    db = sqlite3.connect(database)
    got = db.execute("SELECT count(*), sum(calls) FROM call_path").fetchone()
    db.close()
    check(got == (count, count), f"{what}: each is there, with its call", got)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=100000)
    parser.add_argument("--mappings", type=int, default=1000000)
    parser.add_argument("--call-paths", type=int, default=1000000)
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="pt-big.")
    try:
        room = shutil.disk_usage(folder).free >> 20
        memory = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
        if room < 2048 or memory < 4096:
            print(f"skipped: 2048 MB of disk and 4096 MB of memory are wanted, {room} and {memory} MB are free")
            print("0 passed, 0 failed, 1 skipped")
            return 0
        test(folder, arguments)
        if arguments.call_paths:
            test_call_paths(folder, arguments.call_paths)
    finally:
        shutil.rmtree(folder)
    return sum_up()


sys.exit(main())
