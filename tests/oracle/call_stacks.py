#!/usr/bin/env python3
"""call_stacks.py DB - rebuilds each thread's stack from its branches alone and compares it, at every call,
return and entry of the kernel, with the calls that the database has open there. Prints differences and "N
stacks compared, N differ".

The rules here are a processor's, not the decoder's: a call puts its place on the stack, a return that goes to
after the place on top takes it off; an interrupt or system call likewise, with what leaves the kernel. What
the trace does not show (what was called before it, tail calls) is in neither of the two."""
import collections
import sqlite3
import sys

CALLS, RETURNS = {"call", "call_ind", "call_far"}, {"ret", "ret_far"}
ENTERS, LEAVES = {"syscall", "int", "async"}, {"sysret", "iret", "eret"}
INSN_MAX = 15   # bytes of an instruction
CALL_MAX = 8    # of a call
OVER_MAX = 16   # that a call in the middle of a function may skip, for nobody to run
NO_CALL, NON_CALL = 1, 4

db = sqlite3.connect(sys.argv[1])
db.text_factory = lambda b: b.decode("utf8", "replace")
kinds = dict(db.execute("SELECT id, name FROM kind"))
symbols = {i: (name, start) for i, name, start in db.execute("SELECT id, name, start_ip FROM symbol")}
edges = {i: (f, t, kinds[k], fs, ts)
         for i, f, t, k, fs, ts in db.execute("SELECT id, from_ip, to_ip, kind, from_symbol, to_symbol FROM edge")}
paths = collections.defaultdict(list)
for i, edge in db.execute("SELECT id, edge FROM path_edge ORDER BY id"):
    paths[i >> 5].append(edges[edge])
threads, comms = {}, {}
for i, machine, pid, tid, comm in db.execute("SELECT id, machine, pid, tid, comm FROM thread"):
    threads[i], comms[i] = (machine, pid, tid), comm
slices = {i: (threads.get(th, ()) + ((cpu, vcpu) if threads.get(th, (0, 0, 1))[2] == 0 else ()), comms.get(th))
          for i, th, cpu, vcpu in db.execute("SELECT id, thread, cpu, vcpu FROM slice")}
call_paths = {i: symbols[s][0] if s else ip for i, s, ip in db.execute("SELECT id, symbol, ip FROM call_path")}
opens, closes = collections.defaultdict(list), collections.defaultdict(set)
# A row is written when its call ends: of two that begin with the same branch the outer one is the later.
for i, path, begin, end, flags in db.execute(
        "SELECT id, call_path, call_branch, return_branch, flags FROM call ORDER BY id DESC"):
    if begin is not None and (end is None or end > begin):
        opens[begin].append((i, path, flags))
        closes[end].add(i)

have = collections.defaultdict(list)  # thread: (row, call path, flags)
want = collections.defaultdict(list)  # thread: (place, function, how, where a signal's handler goes back to)
ran = {}
counts = collections.Counter()
shown = 0


def name(symbol, ip):
    return symbols[symbol][0] if symbol else ip


def begins(symbol, ip):
    return symbol is not None and symbols[symbol][1] == ip


def step(stack, f, t, kind, fs, ts):
    """What a branch does to the stack."""
    if kind in CALLS:
        over = 0 < t - f <= CALL_MAX + OVER_MAX and fs == ts and not begins(ts, t)
        if not 0 < t - f <= CALL_MAX and not over:
            stack.append((f, name(ts, t), "call", None))
    elif kind in ENTERS:
        stack.append((f, name(ts, t), "enter", None))
    elif kind in RETURNS:
        i = len(stack)
        while i and not (stack[i - 1][2] == "call" and 0 < t - stack[i - 1][0] <= CALL_MAX):
            i -= 1
        if i:
            del stack[i - 1:]
        elif not begins(ts, t):
            stack.clear()  # what runs now was called before the trace
    elif kind in LEAVES:
        i = len(stack)
        while i and not (stack[i - 1][2] == "enter" or
                         (stack[i - 1][2] == "call" and 0 < t - stack[i - 1][0] <= CALL_MAX)):
            i -= 1
        if not i:
            stack.clear()
            return
        entered = stack[i - 1]
        del stack[i - 1:]
        if 0 <= t - entered[0] <= INSN_MAX:
            return
        i = len(stack)
        while i and stack[i - 1][3] != t:
            i -= 1
        if i:
            del stack[i - 1:]  # a signal's handler is left
        elif begins(ts, t):
            stack.append((0, name(ts, t), "handler", entered[0] if entered[1] != "entry_SYSCALL_64" else entered[0] + 2))
        else:
            stack.clear()


for run, slice_, path, repeats in db.execute("SELECT id, slice, path, repeats FROM run ORDER BY id"):
    thread, comm = slices[slice_]
    branches = paths[path]
    for k in range(repeats):
        for j, (f, t, kind, fs, ts) in enumerate(branches):
            branch = run * 1024 + k * len(branches) + j
            stack = want[thread]
            if kind in LEAVES and f and t and t > 0:
                if ran.get(thread, comm) != comm:
                    stack.clear()  # an exec
                ran[thread] = comm
            if f and t:
                step(stack, f, t, kind, fs, ts)
            if branch in closes:
                have[thread] = [c for c in have[thread] if c[0] not in closes[branch]]
            for call in opens.get(branch, ()):
                if call[2] & NO_CALL:
                    have[thread].clear()
                have[thread].append(call)
            if not (f and t) or kind not in CALLS | RETURNS | ENTERS | LEAVES:
                continue
            got = [call_paths[c[1]] for c in have[thread] if not c[2] & (NO_CALL | NON_CALL)]
            expected = [s[1] for s in stack]
            # The decoder may know more of what was entered before the last thing that is not understood here.
            good = got[len(got) - len(expected):] == expected if len(got) >= len(expected) else False
            counts[good] += 1
            counts["whole"] += len(got) == len(expected)
            if not good and shown < 8:
                shown += 1
                print("FAILED: branch %d of %s, %s %x -> %x %s" % (branch, thread, kind, f & 2**64 - 1, t & 2**64 - 1,
                                                                  name(ts, t)))
                print("  calls    ", got[-9:])
                print("  branches ", expected[-9:])
if counts["whole"] < 0.9 * counts[True]:
    print("FAILED: only %d stacks are known down to their bottom" % counts["whole"])
    counts[False] += 1
print("%d stacks compared, %d differ" % (counts[True] + counts[False], counts[False]))
