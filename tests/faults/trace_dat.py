#!/usr/bin/env python3
"""tests/faults/trace_dat.py [--runs N] [--seed N] - damaged trace.dat files, given to `pt-capture import`.

libtracecmd ends its process on some of them, by a signal or by exit(), and takes any amount of memory on others. The
import is to end by itself with status 0 or 3 and a container that decodes, or with 1, a word on it, and nothing left.
Each run is a process, so that this one goes on whatever happens. A file on which a run went wrong is kept, in the
folder that FAULTS_KEPT names.
"""
import argparse
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.append("tests")
from check import check, sum_up  # noqa: E402

TIME_LIMIT = 60  # seconds; the import's own limit of what nothing comes of is shorter
NUMBERS = [0, 1, 2, 7, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 4096, 4097]


def flip(rng, d):
    d[rng.randrange(len(d))] ^= 1 << rng.randrange(8)


def number(rng, d):
    at = rng.randrange(len(d) - 8)
    d[at:at + 4] = struct.pack("<I", rng.choice(NUMBERS))


def long_number(rng, d):
    at = rng.randrange(len(d) - 8)
    d[at:at + 8] = struct.pack("<Q", rng.choice(NUMBERS) << rng.choice([0, 8, 31, 32]))


def cut(rng, d):
    del d[rng.randrange(len(d)):]


def hole(rng, d):
    at = rng.randrange(len(d))
    del d[at:at + rng.randrange(1, 64)]


def repeat(rng, d):
    at = rng.randrange(len(d))
    d[at:at] = d[at:at + rng.randrange(1, 256)]


def zeros(rng, d):
    at = rng.randrange(len(d))
    n = min(rng.randrange(1, 128), len(d) - at)
    d[at:at + n] = bytes(n)


DAMAGE = [flip, flip, number, number, long_number, cut, hole, repeat, zeros]


def damaged(rng, sound):
    d = bytearray(sound)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if len(d) > 16:
            rng.choice(DAMAGE)(rng, d)
    return bytes(d[:10] if len(d) < 10 else sound[:10] + d[10:])  # the magic remains: it is to be read


def ended(command, folder):
    """Status and what it says; "hangs"."""
    with open(os.path.join(folder, "err"), "w+b") as err:
        # pylint: disable-next=consider-using-with
        p = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err,
                             start_new_session=True)
        try:
            status = p.wait(TIME_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            status = "hangs"
        err.seek(0)
        return status, err.read()


def fault_of(folder):
    capture, decode = (os.path.join(os.environ["PT_BIN"], name) for name in ("pt-capture", "pt-decode"))
    with open(os.path.join(folder, "out"), "wb") as f:
        f.write(b"old")
    status, said = ended([capture, "import", "-q", "-o", "out", "damaged.dat"], folder)
    names = set(os.listdir(folder)) - {"out", "damaged.dat", "err"}
    with open(os.path.join(folder, "out"), "rb") as f:
        old = f.read() == b"old"
    if names:
        return f"leaves {names} after status {status}", status
    if b"ended with signal" in said:
        status = "1, libtracecmd crashed"
    if status != 0 and status != 3 and str(status)[0] == "1":
        return ("" if said.strip() and old else f"fails, and says {said!r}; what was there has gone: {not old}"), status
    if status not in (0, 3) or old:
        return f"status {status}: {said[-200:]!r}", status
    read, said = ended([decode, "-q", "--null", "out"], folder)
    return ("" if read in (0, 3) else f"what comes of it is not read: {read}: {said[-200:]!r}"), status


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    statuses = {}
    for name in ("host", "guest"):
        with open(f"tests/data/trace-cmd/{name}.dat", "rb") as f:
            sound = f.read()
        for i in range(arguments.runs // 2):
            seed = f"{name} {arguments.seed} {i}"
            folder = tempfile.mkdtemp(prefix="pt-dat.")
            path = os.path.join(folder, "damaged.dat")
            with open(path, "wb") as f:
                f.write(damaged(random.Random(seed), sound))
            wrong, status = fault_of(folder)
            statuses[status] = statuses.get(status, 0) + 1
            check(not wrong, "a damaged trace.dat is imported, or refused with a word", f"{seed}: {wrong}")
            if wrong and os.environ.get("FAULTS_KEPT"):
                shutil.copy(path, os.path.join(os.environ["FAULTS_KEPT"], seed.replace(" ", "-") + ".dat"))
            shutil.rmtree(folder)
    print(f"{sum(statuses.values())} damaged files: {sorted(statuses.items(), key=str)} (status, files)")
    check("1" in map(str, statuses) and (0 in statuses or 3 in statuses), "some are refused, some are taken")
    return sum_up()


sys.exit(main())
