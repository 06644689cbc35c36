#!/usr/bin/env python3
"""callers.py DB - each call's parent is its caller: of the calls of the path above, on the same stack, the
next that returns; it was open all the time that the call was. Prints what is not so and "N calls with their
callers, N without, N wrong".

Whose stack it is, is found from threads and CPUs here: a thread's, whatever its name; of idle threads, whose
tid is 0, each CPU or vCPU has one. What was open when its stack was first seen has no caller; its path has
none, too, but in a guest: there it has the path of what the VM's thread was in."""
import bisect
import collections
import sqlite3
import sys

NO_CALL = 1
db = sqlite3.connect(sys.argv[1])
db.text_factory = lambda b: b.decode("utf8", "replace")
threads, guests = {None: (None, None, None)}, set()
for i, vm, machine, pid, tid in db.execute(
        "SELECT h.id, m.pid, machine, h.pid, tid FROM thread h JOIN machine m ON m.id = machine"):
    threads[i] = machine, pid, tid
    if vm:
        guests.add(i)
above = dict(db.execute("SELECT id, parent FROM call_path"))
slices = dict(db.execute("SELECT id, coalesce(vcpu, cpu) FROM slice"))
groups = sorted(db.execute("SELECT id, slice FROM run_group"))


def cpu_of(branch):
    return slices[groups[bisect.bisect_right(groups, (branch >> 10, 1 << 62)) - 1][1]]


def stack_of(thread, branches):
    """None: an idle thread's, and no branch says where it ran."""
    if threads[thread][2] != 0:
        return threads[thread]
    known = [b for b in branches if b is not None]
    return threads[thread] + (cpu_of(known[-1]),) if known else None


calls, returned = {}, collections.defaultdict(list)
for i, thread, path, parent, flags, *span in db.execute(
        "SELECT id, thread, call_path, parent, flags, call_tsc, call_branch, return_tsc, return_branch "
        "FROM call ORDER BY id"):
    calls[i] = thread, path, parent, flags, span, stack_of(thread, span[1::2])
    returned[path, calls[i][5]].append(i)


def around(outer, inner):
    """Whether the one's times and branches enclose the other's, as far as they are known."""
    known = [(a, b) for a, b in zip(outer[:2] + inner[2:], inner[:2] + outer[2:])]
    return all(a is None or b is None or a <= b for a, b in known)


def fault(thread, path, parent, flags, span, stack, i):
    if parent is None:
        if not flags & NO_CALL:
            return "it was called, but has no caller"
        unseen = above.get(path) is None or thread in guests
        return None if unseen else "its path has a caller, but it has none"
    parents = calls[parent]
    if flags & NO_CALL:
        return "it was not called, but has a caller"
    if parents[1] != above.get(path):
        return f"{parent} is of another path"
    if threads[parents[0]] != threads[thread]:
        return f"{parent} is another thread's"
    if not around(parents[4], span):
        return f"{parent} is not around it"
    if stack is not None and parents[5] is not None:
        same = returned[above[path], stack]
        at = bisect.bisect_right(same, i)
        if at == len(same) or same[at] != parent:
            return f"{parent} is not the next to return"
    return None


counts = collections.Counter()
for i, call in calls.items():
    counts["with" if call[2] else "without"] += 1
    why = fault(*call, i)
    if why:
        counts["wrong"] += 1
        if counts["wrong"] <= 3:
            print(f"FAILED: call {i}: {why}")
print(f"{counts['with']} calls with their callers, {counts['without']} without, {counts['wrong']} wrong")
