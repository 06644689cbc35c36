#!/usr/bin/env python3
"""rows.py PT-QUERY DB URL [FOLDER]: every canned query has SQLite's rows.

The traces of DB were loaded in the ascending order of their numbers in ClickHouse, so that rows sort alike. There a trace has
another number, and ids that begin with each trace, so these are made the same first. What is answered of one trace is compared with
a database of that alone, FOLDER/UUID.db.
"""
import csv
import io
import os
import re
import subprocess
import sys

program, db, url = sys.argv[1:4]
folder = sys.argv[4] if len(sys.argv) > 4 else None
failed = []
passed = 0


def ask(where, *arguments):
    done = subprocess.run([program, *(["--db"] if "--db" in arguments else []), where, *arguments, "--format", "csv"],
                          capture_output=True, text=True, errors="surrogateescape")  # bytes of code
    if done.returncode:
        raise RuntimeError(f"{where} {arguments}: {done.stderr.strip()}")
    return list(csv.reader(io.StringIO(done.stdout)))


def names(where, of_one=False):
    done = subprocess.run([program, where], capture_output=True, text=True, check=True)
    part = done.stdout.split("\nOf one trace")[0 if not of_one else 1]
    return [line.split()[0] for line in part.splitlines() if re.match(r"[a-z-]+  ", line) and not line.startswith("pt-query")]


def check(what, ok, *more):
    global passed
    if ok:
        passed += 1
    else:
        failed.append(what)
        print("FAILED:", what)
        for m in more:
            print("   ", m)


number = {}  # a trace's number in ClickHouse, by the uuid
for row in ask(url, "--sql", "SELECT id, uuid FROM traces")[1:]:
    number[row[1]] = row[0]
uuid = {row[0]: row[1] for row in ask(db, "--sql", "SELECT id, uuid FROM traces")[1:]}
check("the same traces", sorted(number) == sorted(uuid.values()) and len(number) > 1)


def value(text):
    try:
        return round(float(text), 6)
    except ValueError:
        return text


def rows_of(where, name, trace_of, more):
    rows = ask(where, name, *more)
    at = rows[0].index("trace") if "trace" in rows[0] else -1
    if name == "slowest-exits":
        # Ids count from the trace's first exit on.
        first = dict(ask(where, "--sql", "SELECT trace, min(id) FROM vmexits GROUP BY trace")[1:])
        for r in rows[1:]:
            r[0] = int(r[0]) - int(first[r[at]])
    if name in ("branches-at", "branches-between") and where == db:
        first = dict(ask(where, "--sql", "SELECT id, (first_run - 1) * 1024 FROM trace")[1:])
        for r in rows[1:]:
            r[0] = int(r[0]) - int(first[r[at]])
    return [rows[0]] + [[trace_of(v) if i == at else value(v) for i, v in enumerate(r)] for r in rows[1:]]


of_number = {v: k for k, v in number.items()}
# Every query, and with parameters.
asked = [(n, []) for n in names(url) if not n.startswith("fleet-")]
asked += [("hot-functions", ["-p", "limit=1000"]), ("hot-edges", ["-p", "limit=3000"]), ("callers", ["-p", "limit=5000"]),
          ("callees", ["-p", "limit=5000"]), ("call-times", ["-p", "limit=1000"]), ("vmexit-latency", ["-p", "vcpu=0"]),
          ("vmexit-latency", ["-p", "machine=vm1"]), ("vmentry-latency", ["-p", "machine=vm1", "-p", "vcpu=1"]),
          ("exits-by-function", ["-p", "limit=1000"]), ("exits-by-rip", ["-p", "limit=2000"]), ("vcpu-stolen", ["-p", "all=1"]),
          ("events", ["-p", "name=cbr"]), ("events", ["-p", "after=0", "-p", "limit=3000"]), ("errors", ["-p", "limit=2000"]),
          ("hot-lines", ["-p", "by=cycles"]), ("callers", ["-p", "function=schedule"]), ("ipc", ["-p", "min=1"]),
          ("branches-at", ["-p", "limit=300"]), ("branches-between", ["-p", "limit=500"]),
          ("vmexit-latency-histogram", ["-p", "vcpu=0"]), ("slowest-exits", ["-p", "limit=50"]), ("hot-functions", ["--no-demangle"])]
for name, more in asked:
    if name not in names(url):
        continue
    what = f"{name} {' '.join(more)}"
    try:
        theirs = rows_of(db, name, lambda t: uuid.get(t, t), more)
        ours = rows_of(url, name, lambda t: of_number.get(t, t), more)
    except RuntimeError as e:
        check(what, False, e)
        continue
    different = [(i, a, b) for i, (a, b) in enumerate(zip(theirs, ours)) if a != b]
    check(what, theirs == ours and len(theirs) > 0, f"{len(theirs)} and {len(ours)} rows", *different[:2])
    print(f"{what}: {len(theirs) - 1} rows", file=sys.stderr)

# Columns of numbers of the views.
views = {"vmexits": "id, reason, latency_ns, guest_ip, time_ns, host_insns, tsc, exit_branch",
         "guest_runs": "id, residency_ns, tsc, time_end_ns, guest_insns", "events": "id, tsc, cpu, vcpu, time_ns",
         "errors": "id, tsc, time_ns", "interrupts": "id, tsc, from_ip", "slices": "id, tsc, branches, insn_count, time_end_ns",
         "edges": "id, from_ip, to_ip, taken, insn_count, to_offset", "functions": "insn_count, branches, calls, ip",
         "function_calls": "id, elapsed_ns, insn_count, call_branch, return_branch", "call_tree": "id, parent, calls, insn_count",
         "thread_names": "id, insn_count, slices", "run": "id, tsc, repeats, cyc_count, tsc_end, tsc_est, tsc_next, time_ns, exact",
         "branches": "id, time_ns, tsc, from_ip, to_ip, from_offset, insn_count, cyc_count, tsc_lo, tsc_hi, edge, path",
         "insns": "ip, count, offset, line, version, bits", "calls": "id, call_time, return_time, branch_count, insn_count, flags",
         "costs": "insn_count, cyc_count, times, total_ns, p50_ns, p99_ns, max_ns", "lines": "line, count, insn_count", "vm_clocks": "id, observations, ratio"}

# What is answered of one trace.
of_one = {n: [[]] for n in names(url, True)}
check("SQLite's queries are all there", set(names(db)) == set(of_one) | {n for n in names(url) if not n.startswith("fleet-")},
      set(names(db)) ^ set(of_one))


def about_one():
    of_one["call-tree"].append(["-p", "percent=0", "-p", "limit=3000"])
    of_one["slowest-calls"].append(["-p", "limit=500"])
    of_one["timeline"].append(["-p", "ms=1"])
    of_one["merged-events"] += [["-p", "after=0", "-p", "limit=3000"], ["-p", "machine=host"]]
    of_one["folded"].append(["-p", "percent=0"])
    of_one["lcov"].append(["-p", "file=none.c"])
    del of_one["diff"]
    two = sorted(uuid.values())[:2]
    theirs = ask(os.path.join(folder, two[0] + ".db"), "--db", os.path.join(folder, two[1] + ".db"), "diff", "-p", "limit=200")
    ours = ask(url, "diff", "-p", "a=" + number[two[0]], "-p", "b=" + number[two[1]], "-p", "limit=200")
    check("diff", theirs == ours and len(theirs) > 50, *[(a, b) for a, b in zip(theirs, ours) if a != b][:2])
    of_vms = {"why-slow", "interrupt-latency", "vm-check", "vmexit-latency-histogram", "timeline", "merged-events"}
    slow = {"function-latency", "annotate", "slowest-calls"}  # of a large trace, SQLite takes seconds, too
    large = {w for w in uuid.values() if os.path.getsize(os.path.join(folder, w + ".db")) > 10000000}
    vms = {uuid[row[0]] for row in ask(db, "--sql", "SELECT DISTINCT trace FROM vmexits")[1:]}
    # Each question about two of the traces; about the first of them with other parameters, too.
    turn = 0
    for name, forms in of_one.items():
        among = sorted(vms if name in of_vms else set(uuid.values()) - (large if name in slow else set())
                       - (vms if name == "annotate" else set()))  # made-up VMs have no code
        turn += 1
        for i in range(2):
            who = among[(turn + i) % len(among)]
            alone = os.path.join(folder, who + ".db")
            for more in forms if i == 0 else forms[:1]:
                theirs = ask(alone, name, *more)
                ours = [[{number[who]: "1"}.get(v, v) for v in row] for row in ask(url, name, "-p", "trace=" + number[who], *more)]
                different = [(k, a, b) for k, (a, b) in enumerate(zip(theirs, ours)) if a != b]
                check(f"of one trace: {name} {' '.join(more)}", theirs == ours and theirs, who, *different[:2])
    # Parts of one trace, which need no copy.
    for who in sorted(set(uuid.values()) - large)[:2]:
        begin, end = ask(os.path.join(folder, who + ".db"), "--sql", "SELECT min(time_ns), max(time_end_ns) FROM slices")[1]
        third = (int(end) - int(begin)) // 3
        for more in (["from=3072", "to=20000"], ["from=5000"], [f"after={int(begin) + third}", f"until={int(begin) + 2 * third}"],
                     [f"until={int(begin) + third}", "from=2000"]):
            more = [x for p in more + ["limit=1000"] for x in ("-p", p)]
            theirs = ask(os.path.join(folder, who + ".db"), "branches-between", *more)
            ours = [[{number[who]: "1"}.get(v, v) for v in row] for row in ask(url, "branches-between", "-p", "trace=" + number[who], *more)]
            check(f"branches-between {more[1]}", theirs == ours, who, *[(a, b) for a, b in zip(theirs, ours) if a != b][:2])
    # A file of it has all views, with the same rows.
    for who in sorted(vms - large)[:1] + sorted(set(uuid.values()) - vms - large)[:1]:
        alone, made = os.path.join(folder, who + ".db"), os.path.join(folder, "made.db")
        subprocess.run([program, url, "-p", "trace=" + number[who], "--format", "sqlite", "-o", made], check=True)
        for (view,) in ask(alone, "--sql", "SELECT name FROM sqlite_schema WHERE type = 'view'")[1:]:
            columns = views[view] if view == "run" else "*"  # the others of run say how it is packed
            theirs, ours = ([[{number[who]: "1"}.get(v, v) for v in row] for row in ask(w, "--sql", f"SELECT {columns} FROM {view}")]
                            for w in (alone, made))
            if "load_time" in theirs[0]:
                for rows in theirs, ours:
                    rows[1][rows[0].index("load_time")] = ""
            check(f"the view {view} of a file", theirs[0] == ours[0] and sorted(theirs) == sorted(ours), who,
                  *[(a, b) for a, b in zip(sorted(theirs), sorted(ours)) if a != b][:2])
        check("a file of it: ipc has rows", int(ask(made, "--sql", "SELECT count(*) FROM ipc")[1][0]) > 0 or who in vms)
        os.unlink(made)
    for who in sorted(vms - large)[:1] + sorted(set(uuid.values()) - vms)[:1]:
        alone = os.path.join(folder, who + ".db")
        page = [subprocess.run([program, *w, "report", "-o", "/dev/stdout"], capture_output=True, text=True, check=True).stdout
                for w in ([alone], [url, "-p", "trace=" + number[who]])]
        check("the report", page[0].replace(alone, url) == page[1].replace(number[who], "1") and len(page[0]) > 100000)


def watched():
    """What pt-query watch writes of the server, and of a folder with the same traces in one database."""
    there, texts = os.path.join(folder, "watched"), []
    os.mkdir(there)
    os.symlink(os.path.abspath(db), os.path.join(there, "all.db"))
    for where in there, url:
        file = os.path.join(folder, "watched.prom")
        subprocess.run([program, "watch", where, "--textfile", file, "--once", "vmexit-latency-histogram", "vmexit-latency", "threads"], check=True)
        with open(file) as f:
            texts.append(sorted(re.sub(r'db="[^"]*",?', "", line) for line in f if "pt_database" not in line))
    texts[0] = sorted(re.sub(r'trace="(\d+)"', lambda m: f'trace="{number[uuid[m[1]]]}"', line) for line in texts[0])
    check("watch", texts[0] == texts[1] and len(texts[0]) > 500, *[(a, b) for a, b in zip(*texts) if a != b][:2])


if folder:
    about_one()
    watched()

# The views, row by row: as many, and the sums of these columns.
for trace, who in uuid.items():
    for view, columns in views.items():
        if view == "branches" and int(ask(db, "--sql", f"SELECT branches FROM traces WHERE id = {trace}")[1][0]) > 300000:
            continue
        # Ids are compared as differences to the smallest; of others the sums of their last 20 bits, which do not overflow.
        base = {"id": "min(id)", "parent": "(SELECT min(id) FROM call_tree WHERE trace = %s)"}
        shifted = {"id", "parent", "exit_branch", "call_branch", "return_branch", "edge", "path"}
        plain = [c.strip() for c in columns.split(",")]
        lite = ", ".join(f"sum({c} & 1048575), count({c})" if c not in shifted else f"count({c})" for c in plain)
        house = ", ".join(f"sum(bitAnd(toInt64(toNullable({c})), 1048575)), count({c})" if c not in shifted else f"count({c})" for c in plain)
        a = ask(db, "--sql", f"SELECT count(*), {lite} FROM {view} WHERE trace = {trace}")[1]
        b = ask(url, "--sql", f"SELECT count(), {house} FROM {view} WHERE trace = {number[who]}")[1]
        check(f"the view {view}", a == b, a, b)
print(f"{passed} passed, {len(failed)} failed")
