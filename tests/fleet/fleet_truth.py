#!/usr/bin/env python3
"""fleet_truth.py PT-QUERY DB URL HTTP: the fleet-* queries against what Python computes of SQLite's rows."""
import bisect
import csv
import io
import json
import math
import os
import subprocess
import sys
import urllib.request
from collections import defaultdict

program, db, url, http = sys.argv[1:5]
passed, failed = 0, 0


def ask(where, *arguments, form="json"):
    done = subprocess.run([program, where, *arguments, "--format", form], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{where} {arguments}: {done.stderr.strip()}")
    return json.loads(done.stdout) if form == "json" else done.stdout


def check(what, ok, *more):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("FAILED:", what, *more)


def rank(values, per_mille):
    values = sorted(values)
    return values[math.ceil(len(values) * per_mille / 1000) - 1] if values else None


rows = ask(db, "--sql", """SELECT t.uuid, t.host, t.kernel, t.cpu, v.reason, v.kvm_name, v.latency_ns, v.id, v.exit_branch,
    v.entry_branch, v.latency_tsc, v.tid, v.trace FROM vmexits v JOIN traces t ON t.id = v.trace""")
check("there are VM exits", len(rows) > 500)

groups = defaultdict(list)
for r in rows:
    groups[r["kernel"], r["cpu"], r["kvm_name"], r["reason"]].append(r)
got = ask(url, "fleet-exits", "-p", "limit=10000")
check("fleet-exits: as many rows", len(got) == len(groups), len(got), len(groups))
for g in got:
    mine = groups[g["kernel"], g["cpu"], g["kvm_name"], g["reason"]]
    ns = [r["latency_ns"] for r in mine if r["latency_ns"] is not None]
    want = [len({r["host"] for r in mine}), len(mine), len(ns), rank(ns, 500), rank(ns, 900), rank(ns, 990), rank(ns, 999),
            max(ns, default=None), sum(ns) if ns else None]
    check("fleet-exits", want == [g[k] for k in ("hosts", "exits", "timed", "p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "max_ns",
                                                 "total_ns")], want, g)

worst = sorted((r["latency_ns"] for r in rows if r["latency_ns"] is not None), reverse=True)
got = ask(url, "fleet-worst", "-p", "limit=2000")
check("fleet-worst: the longest", [g["latency_ns"] for g in got] == worst[:2000])
check("fleet-worst: ten", [g["latency_ns"] for g in ask(url, "fleet-worst")] == worst[:10])
with_path = 0
uuid_of = {t["id"]: t["uuid"] for t in ask(url, "--sql", "SELECT id, uuid FROM traces")}
calls = defaultdict(list)
for c in ask(db, "--sql", """SELECT trace, tid, function, call_branch, return_branch, elapsed_tsc FROM function_calls
        WHERE call_branch IS NOT NULL AND return_branch IS NOT NULL AND elapsed_tsc > 0"""):
    calls[c["trace"], c["tid"]].append(c)
for c in calls.values():
    c.sort(key=lambda x: x["call_branch"])
made = {who: [c["call_branch"] for c in mine] for who, mine in calls.items()}
# Ids of SQLite's begin anew in each trace when the smallest is taken off.
first = {}
for r in rows:
    first[r["uuid"]] = min(r["id"], first.get(r["uuid"], r["id"]))
by_id = {(r["uuid"], r["id"] - first[r["uuid"]] + 1): r for r in rows}
for g in got:
    exit_ = by_id[uuid_of[g["trace"]], g["id"]]
    who = exit_["trace"], exit_["tid"]
    at = bisect.bisect_right(made.get(who, []), exit_["exit_branch"])
    end = bisect.bisect_left(made.get(who, []), exit_["entry_branch"])
    path = [c["function"] for c in calls.get(who, [])[at:end]
            if c["return_branch"] < exit_["entry_branch"] and 2 * c["elapsed_tsc"] > exit_["latency_tsc"]]
    with_path += bool(path)
    check("fleet-worst: the call path", g["call_path"] == ";".join(path), g["call_path"], path)
check("fleet-worst: some have a call path", with_path > 0)


def server(sql):
    return urllib.request.urlopen(http, sql.encode()).read().decode()


# The same exits again, a day later and three times as long: a host's p99 moved.
day_of = ask(url, "--sql", "SELECT host, toString(day) AS day, count() AS n FROM vmexits GROUP BY host, day")
names = [c["name"] for c in ask(url, "--sql", "SELECT name FROM system.columns WHERE database = 'pt' AND table = 'vmexits_data'")]
change = {"day": "toDate('2020-01-02')", "latency_ns": "latency_ns * 3"}
for day, more in (("2020-01-01", {}), ("2020-01-02", {"latency_ns": "latency_ns * 3"})):
    change = {"day": f"toDate('{day}')", "host": "'moving'", **more}
    server(f"INSERT INTO pt.vmexits_data ({', '.join(names)}) SELECT {', '.join(change.get(n, n) for n in names)} "
           "FROM pt.vmexits WHERE host != 'moving'")
ns = [r["latency_ns"] for r in rows if r["latency_ns"] is not None]
got = ask(url, "fleet-moved", "-p", "day=2020-01-02")
check("fleet-moved: the host that moved", [g["host"] for g in got] == ["moving"], got)
g = got[0] if got else {}
check("fleet-moved: how far", g.get("change_percent") == 200 and g.get("p99_before_ns") == rank(ns, 990)
      and g.get("p99_ns") == 3 * rank(ns, 990) and g.get("exits") == g.get("exits_before") == len(ns), g)
check("fleet-moved: not so far", ask(url, "fleet-moved", "-p", "day=2020-01-02", "-p", "percent=201") == [])
check("fleet-moved: no day before", ask(url, "fleet-moved", "-p", "day=2020-01-01") == [])

text = ask(url, "vmexit-latency", form="prometheus")
check("Prometheus' text", text.count("pt_vmexit_latency_p99_seconds{") > 3)
print(list(csv.reader(io.StringIO(ask(url, "fleet-moved", form="csv"))))[0])


def refused(what, words, *arguments):
    done = subprocess.run([program, url, *arguments], capture_output=True, text=True)
    check(what, done.returncode in (1, 2) and words in done.stderr and not done.stdout, done.stderr)


refused("of one trace: which?", "several traces", "call-tree")
refused("the report: which?", "several traces", "report")
refused("no such trace", "has no trace 7", "call-tree", "-p", "trace=7")
refused("no number", "not a trace's number", "call-tree", "-p", "trace=x")
refused("no such parameter of one trace", "no parameter x", "call-tree", "-p", f"trace={next(iter(uuid_of))}", "-p", "x=1")
check("why-slow: of all the slowest", "slow" in ask(url, "why-slow")[0])
refused("serve", "-f sqlite -o trace.db", "serve")
refused("watch is another command", "watch comes first", "watch")
refused("a view that is not there", "all views of pt-schema(5) are in a file of one trace", "--sql", "SELECT * FROM ipc")
refused("a file of a trace: which?", "several traces", "-f", "sqlite")
refused("no such query", "no query is called 'nothing'", "nothing")
refused("no such parameter", "the query has no parameter x", "vmexit-latency", "-p", "x=1")
refused("wrong SQL", " identifier", "--sql", "SELECT nothing FROM traces")
if not os.environ.get("PT_ENGINE_ALONE"):  # of newer.sh: a session there that reads only would do so for good
    refused("a statement that writes", "readonly", "--sql", "DROP TABLE traces_data")
    refused("a statement that inserts", "readonly", "--sql", "INSERT INTO pt_schema VALUES (2)")
refused("a FORMAT", "leave FORMAT out", "--sql", "SELECT 1 FORMAT TSV")
odd = "it's a \\ \"name\"\n; DROP"
check("a text as a parameter", ask(url, "--sql", "SELECT :x AS x, ':x' AS y, :z AS z", "-p", f"x={odd}")
      == [{"x": odd, "y": ":x", "z": None}])
print(f"{passed} passed, {failed} failed")
