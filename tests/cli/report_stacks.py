"""report_stacks.py PT-QUERY DB - fills DB with two traces' sums of calls (threads of several names, idle ones, unknown ones; paths
of one thread and of several; more of them than the report names; callees that took longer than their callers), and computes in
another way what the report's element "stacks", folded and call-times say of them."""
import collections
import json
import random
import re
import sqlite3
import subprocess
import sys

sys.path.append("tests")
from check import check, same, sum_up  # noqa: E402

LIMIT = 25000  # of stacks: queries/report/report.c
PATHS = 16000
program, database = sys.argv[1:]
db = sqlite3.connect(database)
rnd = random.Random(1)


def digits(numbers, digit):
    """As schema/tables.sql has them."""
    parts = [(n >> 19 * digit) % 2**19 + 1 for n in numbers]
    return "".join(chr(c + 2**20 if 0xd800 <= c < 0x10000 else c) for c in parts) if max(parts) > 1 else None


def pack(first, trace, rows):
    """Rows of call path, thread (None: unknown), calls, instructions, cycles and time (None: unknown)."""
    paths, threads, *sums = zip(*rows)
    least = min((t for t in threads if t), default=None)
    columns = [[p - paths[0] for p in paths], [t - least + 1 if t else 0 for t in threads], *sums[:2], *([0 if c is None else c + 1 for c in s] for s in sums[2:])]
    path, thread, *sums = [[digits(c, d) for d in range(3)] for c in columns]
    db.execute(f"INSERT INTO thread_path_group VALUES ({', '.join('?' * 21)})",
               (first, len(rows), trace, paths[0], *path[:2], least, *thread[:2], *sums[0], *sums[1], *sums[2], *sums[3]))


def fill():
    db.executescript("DELETE FROM thread; DELETE FROM call_path; DELETE FROM thread_path_group; DELETE FROM symbol; DELETE FROM slice;"
                     "UPDATE trace SET insn_count = 5000000, cyc_count = 4000000, first_tsc = 1000, last_tsc = 900000;"
                     "INSERT INTO trace SELECT 2, 'second', name, command, host, kernel, arch, cpu, engine, synthetic, start_time, tsc_hz,"
                     "  time_zero, NULL, NULL, first_tsc, last_tsc, 0, 0, 100000, 0, NULL, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 0, '',"
                     "  detail, NULL, NULL, NULL FROM trace WHERE id = 1;")
    shared = {}
    for trace, first_thread, first_path in ((1, 1, 1), (2, 100, PATHS + 1)):
        threads = []  # a process' threads have one first row and many names; idle ones are what they are called
        for i in range(12):
            number = first_thread + i
            kind = i % 4
            threads.append(number)
            db.execute("INSERT INTO thread VALUES (?, ?, 1, ?, ?, ?, ?)",
                       (number, trace, 10, 0 if kind == 3 else 20 + i // 3, f"t{i}", number - i % 3 if kind != 3 else first_thread + 3))
        for i in range(40):
            db.execute("INSERT INTO symbol (id, trace, start_ip, end_ip, name, machine, first) VALUES (?1, ?, ?, ?, ?, 1, ?1)",
                       (trace * 1000 + i, trace, i * 256, i * 256 + 256, f"f{i // 2}"))  # two of each name
        for i in range(PATHS if trace == 1 else 300):
            path = first_path + i
            parent = None if i < 5 else first_path + rnd.randrange(max(0, i - 400), i)
            n = rnd.randrange(6) if i > 3 else 0
            of = rnd.sample(threads + [None], n)
            sums = [(rnd.randrange(1, 50), rnd.randrange(3000), *(rnd.choice((None, rnd.randrange(m))) for m in (3000, 2000))) for _ in of]
            cycles, ticks = ([s[k] for s in sums if s[k] is not None] for k in (2, 3))
            db.execute("INSERT INTO call_path VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                       (path, trace, parent, trace * 1000 + rnd.randrange(40), rnd.choice((None, rnd.randrange(256))),
                        sum(s[0] for s in sums), 0, sum(s[1] for s in sums), sum(cycles) if cycles else None,
                        sum(ticks) if ticks else None, of[0] if n == 1 else None))
            if n > 1:
                shared.setdefault(trace, []).extend((path, thread, *s) for thread, s in sorted(zip(of, sums), key=lambda x: x[0] or 0))
    first = 1
    for trace, rows in shared.items():
        for at in range(0, len(rows), 64):
            pack(first, trace, rows[at:at + 64])
            first += min(64, len(rows) - at)
    db.commit()


def plus(a, b):
    return b if a is None else a if b is None else a + b


def self_sums(trace):
    """{(thread, path): [insns, cycles, ticks]}, and the names that threads had in them."""
    who = dict(db.execute("SELECT id, CASE WHEN tid = 0 THEN id ELSE first END FROM thread WHERE trace = ?", (trace,)))
    parents = dict(db.execute("SELECT id, parent FROM call_path"))
    sums = collections.defaultdict(lambda: [None, None, None])
    rows = [(who[t], p, x) for t, p, *x in db.execute(
        "SELECT thread, id, insn_count, cyc_count, elapsed_tsc FROM call_path WHERE thread IS NOT NULL") if t in who]
    rows += [(who.get(t), p, x) for t, p, *x in db.execute(
        "SELECT thread, call_path, insn_count, cyc_count, elapsed_tsc FROM thread_path WHERE trace = ?", (trace,))]
    for thread, path, x in rows:
        for at, sign in ((path, 1), (parents[path], -1)):
            if at is not None:
                one = sums[thread, at]
                one[:] = [plus(a, b if b is None else sign * b) for a, b in zip(one, x)]
    return {key: [v if v is None else max(v, 0) for v in x] for key, x in sums.items() if any(v and v > 0 for v in x)}


def nothing_first(*numbers):
    return [(n is not None, n or 0) for n in numbers]


def stacks(trace):
    insns, cycles, ticks, mult, shift = db.execute(
        "SELECT insn_count, cyc_count, last_tsc - first_tsc, time_mult, time_shift FROM trace WHERE id = ?", (trace,)).fetchone()
    sums = self_sums(trace)
    share = {key: max((v or 0) / whole for v, whole in zip(x, (insns, cycles, ticks)) if whole) for key, x in sums.items()}
    ranked = sorted(sums, key=lambda k: (-share[k], k[1], nothing_first(k[0])))
    rows = collections.defaultdict(lambda: [None, None, None])
    for n, (thread, path) in enumerate(ranked):
        one = rows[thread, path if n < LIMIT else None]
        one[:] = [plus(a, b) for a, b in zip(one, sums[thread, path])]
    return [[thread, path, x[0], x[1], x[2] if x[2] is None or mult is None else x[2] * mult >> shift]
            for (thread, path), x in sorted(rows.items(), key=lambda r: nothing_first(r[0][1], r[0][0]))]


def ask(*arguments):
    return subprocess.run([program, database, *arguments], check=True, capture_output=True, text=True).stdout


def folded(percent):
    """Instructions by path; threads and names are folded.sql's."""
    lines = collections.Counter()
    for trace, whole in ((1, 5000000), (2, 100000)):
        for x in self_sums(trace).values():
            if x[0] and x[0] >= percent / 100 * whole:
                lines[x[0]] += 1
    return lines


def call_times():
    names = dict(db.execute("SELECT id, name FROM symbol"))
    found = collections.defaultdict(lambda: [0, None, 0])
    for trace, symbol, calls, insns, ticks in db.execute("SELECT trace, symbol, calls, insn_count, elapsed_tsc FROM call_path"):
        one = found[trace, names[symbol]]
        one[0] += calls
        one[1] = plus(one[1], ticks)
        one[2] += insns
    return {key: (calls, insns) for key, (calls, _, insns) in found.items()}, {key: ticks for key, (_, ticks, _) in found.items()}


fill()
same(True, db.execute("SELECT count(*) FROM thread_path WHERE trace = 1").fetchone()[0] > LIMIT, "there are more than are named")
for trace in (1, 2):
    element = re.search(r'id="data-stacks">(.*?)</script>', ask("report", "-p", f"trace={trace}"), re.S)[1]
    got = json.loads(element)
    expected = stacks(trace)
    same(["thread", "path", "insns", "cycles", "time"], got["columns"], "columns")
    check(expected == got["rows"], "stacks: the rows", next((f"{a} {b}" for a, b in zip(expected, got["rows"]) if a != b), "length"))
    same(trace == 1, any(r[1] is None for r in got["rows"]), "others are summed up where there are more than are named")
for percent in (0, 0.01, 0.03):
    got = collections.Counter(int(line.rsplit(" ", 1)[1]) for line in ask("folded", "-p", f"percent={percent}").splitlines())
    same(sum(folded(percent).values()), sum(got.values()), "folded: as many stacks", percent)
    same(folded(percent), got, "folded: their instructions", percent)
totals, ticks = call_times()
rows = json.loads(ask("call-times", "-p", "limit=1000", "-f", "json"))
same(totals, {(r["trace"], r["function"]): (r["calls"], r["instructions"]) for r in rows}, "call-times: calls and instructions")
mult, shift = db.execute("SELECT time_mult, time_shift FROM trace WHERE id = 1").fetchone()
same({k: int(v * mult / (1 << shift)) for k, v in ticks.items() if k[0] == 1}, {(r["trace"], r["function"]): r["elapsed_ns"] for r in rows if r["trace"] == 1},
     "call-times: times")
sys.exit(sum_up())
