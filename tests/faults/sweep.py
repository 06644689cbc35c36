#!/usr/bin/env python3
"""tests/faults/sweep.py [--sample N] [--once] [--kills] [CASE...] - the N-th call of each program fails, for each N.

What a run must be, whichever call failed:
  - it ends, by itself, within 20 s: no crash, no hang;
  - its status is 0 (3 where that is what it is without faults) and what it wrote is what it writes without
    faults, byte by byte; or its status is 1 and it says why;
  - what stood under an output's name is there, or what is written without faults; nothing else is left;
  - a database is the old or the new one, row by row, and integrity_check finds nothing.

Calls that are few are tried all. Where there are more than ALL_MAX, those are tried whose call stack is new, and
some by chance. --sample N: no more than N of each kind. --once: one call fails, not all after it, and none by
half. --kills: SIGKILL instead of failures, and then a power failure (crash.h).
The last line is what tests/run.sh wants; the lines before it say how many points were tried.
Environment: PT_BIN, PT_BUILD, PT_SHARED as in tests/run.sh; JOBS.
"""
import argparse
import concurrent.futures
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading

sys.path[:0] = ["tests", "tests/faults"]
from cases import cases, fixtures, prepared_environment  # noqa: E402
from check import check, sum_up  # noqa: E402
from contents import differs  # noqa: E402

ALL_MAX = 300  # points of one kind that are all tried
CHANCE = 60  # of more: that many by chance, beside those of new stacks
NEW_MAX = 900  # of new stacks
TIME_LIMIT = 20  # seconds

ENOSPC, EMFILE, EIO = 28, 24, 5
# (calls, error, how)
FAILURES = [("memory", 12, "once"), ("memory", 12, "on"), ("write", ENOSPC, "once"), ("write", ENOSPC, "on"),
            ("write", EIO, "short"), ("sync", EIO, "once"), ("rename,link", EIO, "once"), ("unlink", EIO, "once"),
            ("truncate", EIO, "once"), ("close", EIO, "once"), ("open", EMFILE, "once"), ("open", EMFILE, "on"),
            ("read", EIO, "once"), ("read", EIO, "on"), ("read", EIO, "short"), ("mmap", 12, "once"), ("mmap", 12, "on")]
CHANGES = "write,sync,rename,link,unlink,truncate"
KILLS = [(CHANGES, 0, "kill"), (CHANGES, 0, "crash")]
CRASH_SEEDS = 4

totals = {"points": 0, "runs": 0, "bad": 0, "survived": 0, "excused": 0}
lock = threading.Lock()


def environment(calls, at, how, error, log=None, seed=0, folder="/"):
    env = dict(prepared_environment())
    env.update(LD_PRELOAD=os.path.join(os.environ["PT_BUILD"], "tests/faults/shim.so"), FAULT_CALLS=calls, FAULT_AT=str(at), FAULT_HOW=how,
               FAULT_ERRNO=str(error), FAULT_SEED=str(seed), FAULT_FOLDER=folder)
    if log:
        env["FAULT_LOG"] = log
    return env


class Run:
    """One run of a case in an empty folder of its own."""

    failure = None

    def __init__(self, case, work, env, wrap=()):
        self.case = case
        self.folder = tempfile.mkdtemp(dir=work)
        for name, source in case.before.items():
            shutil.copy(source, os.path.join(self.folder, name))
        with open(os.path.join(self.folder, ".out"), "wb") as out, open(os.path.join(self.folder, ".err"), "wb") as err, \
                open(case.stdin or os.devnull, "rb") as stdin:
            # pylint: disable-next=consider-using-with
            p = subprocess.Popen([*wrap, *case.command], cwd=self.folder, env=env, stdin=stdin, stdout=out, stderr=err,
                                 start_new_session=True)
            try:
                self.status = p.wait(TIME_LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
                self.status = "hangs"
        self.out, self.err = self.take(".out"), self.take(".err")

    def take(self, name):
        path = os.path.join(self.folder, name)
        with open(path, "rb") as f:
            text = f.read()
        os.unlink(path)
        return text

    def path(self, name):
        return os.path.join(self.folder, name)

    def names(self):
        return set(os.listdir(self.folder))

    def remove(self):
        shutil.rmtree(self.folder)


def whole_of(case, work):
    """What a run without faults leaves."""
    run = Run(case, work, environment("none", 0, "once", 0))
    assert run.status in (0, 3), f"{case.name}: {run.status} {run.err}"
    whole = {"status": run.status, "out": run.out, "files": {}}
    for name in case.outputs:
        whole["files"][name] = case.content(run.path(name))
    assert run.names() == set(case.outputs) | set(case.before), f"{case.name}: leaves {run.names()}"
    whole["old"] = {name: case.content(source) for name, source in case.before.items() if name in case.outputs}
    run.remove()
    return whole


def fault_of(case, whole, run, kill=False):
    """What is wrong with a run; "" nothing."""
    ok = run.status == whole["status"] or run.status == 0
    if kill and run.status == -9:
        pass
    elif run.status == 3 and case.incomplete and re.search(case.incomplete, run.err):
        return ""
    elif run.status not in (0, 1, 3) or (run.status == 3 and whole["status"] != 3):
        return f"ends with {run.status}"
    elif ok and not (case.warns and re.search(case.warns, run.err)) and differs(case, run.out, whole["out"]):
        return f"ends with {run.status}, but its output is another one"
    elif run.status == 1 and not run.err.strip():
        return "ends with 1, but does not say why"
    warned = ok and case.warns and re.search(case.warns, run.err)
    for name in case.outputs:
        if not os.path.lexists(run.path(name)):
            if ok or name in whole["old"]:
                return f"{name} is missing after status {run.status}"
            continue
        content = case.content(run.path(name))
        if warned or content == whole["files"][name] or (not ok and content == whole["old"].get(name)):
            continue
        return f"{name} is neither old nor new after status {run.status}"
    left = run.names() - set(case.outputs) - set(case.before)
    if (failure := run.failure) and failure[0] == "read" and failure[2] == "on" and case.again:
        # Who cannot read any more cannot roll back: the journal is for the next one.
        left -= {name + "-journal" for name in case.outputs}
        kill = True
    if left and not kill:
        return f"{', '.join(sorted(left))} is left after status {run.status}"
    if kill and not ok and case.again:
        return case.again(case, whole, run)
    return ""


def points_of(case, calls, work, sample, rng):
    """The N that are tried, and how many there are."""
    log = os.path.join(work, f"log.{threading.get_ident()}")
    if os.path.exists(log):
        os.unlink(log)
    run = Run(case, work, environment(calls, 0, "once", 0, log), ["setarch", "-R"])
    run.remove()
    try:
        with open(log, "rb") as f:
            stacks = f.read()
    except FileNotFoundError:
        return [], 0
    count = len(stacks) // 8
    if count <= ALL_MAX:
        points = list(range(1, count + 1))
    else:
        new = {}
        for i, stack in enumerate(struct.unpack(f"{count}Q", stacks)):
            new.setdefault(stack, i + 1)
        points = sorted(new.values())
        if len(points) > NEW_MAX:
            points = rng.sample(points, NEW_MAX)
        points = sorted(set(points) | set(rng.sample(range(1, count + 1), CHANCE)))
    if sample and len(points) > sample:
        points = sorted(rng.sample(points, sample))
    return points, count


def try_point(case, whole, work, failure, at, seed=0):
    calls, error, how = failure
    folder = "/" if how != "crash" else work
    run = Run(case, work, environment(calls, at, how, error, seed=seed, folder=folder))
    run.failure = failure
    wrong = fault_of(case, whole, run, how in ("kill", "crash"))
    if wrong and case.excuse:
        shown = Run(case, work, {**environment(calls, at, how, error), "FAULT_SHOW": "1"})
        shown.remove()
        if re.search(case.excuse, shown.err):
            wrong = ""
            with lock:
                totals["excused"] += 1
    with lock:
        totals["runs"] += 1
        totals["survived"] += run.status in (0, 3)
        totals["bad"] += bool(wrong)
        text = f"{case.name}: {calls} {how}"
        check(not wrong, f"{text}: whole, or a clean failure",
              f"at {at}{f' seed {seed}' if how == 'crash' else ''}: {wrong}: {run.err[-160:].decode(errors='replace')}")
    run.remove()


def sweep(case, work, arguments):
    rng = random.Random(case.name + str(arguments.seed))
    whole = whole_of(case, work)
    counted = {}
    lines = []
    for failure in KILLS if arguments.kills else [f for f in FAILURES if f[2] == "once" or not arguments.once]:
        calls, _, how = failure
        if how == "crash" and not case.crashes:
            continue
        if calls not in counted:
            counted[calls] = points_of(case, calls, work, arguments.sample, rng)
        points, count = counted[calls]
        if not points:
            continue
        seeds = range(CRASH_SEEDS) if how == "crash" else [0]
        for at in points:
            for seed in seeds:
                try_point(case, whole, work, failure, at, seed * 1000003 + at)
        lines.append(f"{calls} {how} {len(points)} of {count}")
        with lock:
            totals["points"] += len(points)
    with lock:
        print(f"{case.name}: {'; '.join(lines)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", action="store_true")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    work = tempfile.mkdtemp(prefix="pt-faults.")
    try:
        made = fixtures(work)
        chosen = [c for c in cases(made) if not arguments.cases or any(a in c.name for a in arguments.cases)]
        if arguments.kills:
            chosen = [c for c in chosen if c.outputs]
        jobs = int(os.environ.get("JOBS") or os.cpu_count())
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for done in concurrent.futures.as_completed([pool.submit(sweep, c, work, arguments) for c in chosen]):
                done.result()
    finally:
        shutil.rmtree(work)
    print(f"{totals['points']} points, {totals['runs']} runs: {totals['survived']} went on with all that they write, "
          f"{totals['bad']} went wrong"
          + (f", {totals['excused']} by a library's fault" if totals["excused"] else ""))
    return sum_up()


sys.exit(main())
