"""latency.py PT-QUERY DB TEXT ADDRESSES FUNCTION - what function-latency and slowest-calls say of a function,
against its calls as the branches of `pt-decode --text -F tid,tsc,kind,from,to,insns` have them: a call
pushes, the return to after it pops. ADDRESSES: of `nm`. The last line is "N passed, N failed"."""
import csv
import subprocess
import sys
from collections import Counter, defaultdict

sys.path.append("tests")
from check import check, same, sum_up  # noqa: E402

program, db, text, addresses, function = sys.argv[1:]
CALL_MAX = 8  # bytes of a call instruction


def query(*asked, **parameters):
    arguments = [program, db, *asked, "--format", "csv"] + [f"--param={k}={v}" for k, v in parameters.items()]
    out = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True).stdout
    return list(csv.DictReader(out.splitlines()))


symbols = sorted((int(a, 16), n) for a, t, n in (line.split() for line in open(addresses)) if t in "tT")
start = {name: at for at, name in symbols}
name_of = {at: name for at, name in symbols}
(clock,) = query("--sql", "SELECT time_mult, time_shift FROM traces")
mult, shift = int(clock["time_mult"]), int(clock["time_shift"])


def ns(ticks):
    return ticks * mult >> shift


def close(want, got, calls=1):
    """The database rounds its estimates for single branches: a packet's time apart, at most."""
    return abs(want - got) <= max(5 * calls, want / 100)


stacks, totals, calls = defaultdict(list), Counter(), []
for line in open(text):
    tid, tsc, kind, source, target, insns = line.split()
    source, target, stack = int(source, 16), int(target, 16), stacks[tid]
    totals[tid] += int(insns)
    if kind in ("call", "call_ind"):
        stack.append({"to": target, "after": source, "tid": int(tid), "begin": int(tsc), "insns": totals[tid],
                      "callees": Counter()})
    elif kind == "ret":
        at = len(stack) - 1
        while at >= 0 and not stack[at]["after"] < target <= stack[at]["after"] + CALL_MAX:
            at -= 1
        if at < 0:
            continue
        call = stack[at]
        del stack[at:]
        call["caller"] = name_of.get(stack[-1]["to"], "?") if stack else "?"
        call["ticks"], call["insns"] = int(tsc) - call["begin"], totals[tid] - call["insns"]
        # Where another thread runs in between it takes long, in a callee or in itself.
        call["callees"]["[itself]"] = ns(call["ticks"]) - sum(call["callees"].values())
        if stack:
            stack[-1]["callees"][name_of.get(call["to"], "?")] += ns(call["ticks"])
        if call["to"] == start[function]:
            calls.append(call)

check(len(calls) == 301 + 40 + 55, "all calls are there", len(calls))


def percentiles(values, unit):
    values, ret = sorted(values), {}
    for name, per_mille in (("p50", 500), ("p90", 900), ("p99", 990), ("p99_9", 999), ("max", 1000)):
        ret[f"{name}_{unit}"] = str(values[-(-len(values) * per_mille // 1000) - 1])
    return ret


def expected(some):
    return {"calls": str(len(some)), "timed": str(len(some)), "total_ns": str(sum(ns(c["ticks"]) for c in some)),
            **percentiles([ns(c["ticks"]) for c in some], "ns"), **percentiles([c["insns"] for c in some], "insns")}


rows = query("function-latency", function=function)
want = {("all", "", ""): expected(calls)}
for key in {c["caller"] for c in calls}:
    want["caller", key, ""] = expected([c for c in calls if c["caller"] == key])
for key in {c["tid"] for c in calls}:
    want["thread", "", str(key)] = expected([c for c in calls if c["tid"] == key])
got = {(r["by"], r["caller"], r["tid"]): r for r in rows}
same(sorted(want), sorted(got), "function-latency: all, callers and threads")
for key, row in want.items():
    times = [k for k in row if k.endswith("_ns")]
    same({k: v for k, v in row.items() if k not in times}, {k: got[key][k] for k in row if k not in times},
         f"function-latency: {key[0]}: counts and instructions", key)
    check(all(close(int(row[k]), int(got[key][k]), int(row["calls"]) if k == "total_ns" else 1) for k in times),
          f"function-latency: {key[0]}: times", (key, row, got[key]))

slowest = query("slowest-calls", function=function, limit=20)
ticks = sorted((c["ticks"] for c in calls), reverse=True)
check(all(close(ns(a), int(r["elapsed_ns"])) for a, r in zip(ticks, slowest)), "slowest-calls of the function",
      (ticks[:5], slowest))
median = ns(sorted(ticks)[-(-len(ticks) // 2) - 1])
check(all(close(median, int(r["median_ns"])) for r in slowest), "slowest-calls: the median call", (median, slowest))
for row in slowest:
    alike = [c for c in calls if close(ns(c["ticks"]), int(row["elapsed_ns"])) and c["tid"] == int(row["tid"])
             and c["insns"] == int(row["instructions"])]
    first = {max(c["callees"], key=c["callees"].get) for c in alike}
    check(row["slower_in"].split(" +")[0] in first, "slowest-calls: the callee that took longer", (row["slower_in"], first, row["elapsed_ns"], row["instructions"], row["id"]))
refills = sum(c["insns"] > 2000 for c in calls)
same(refills, sum("refill +" in r["slower_in"] and "(1 calls, median 0)" in r["slower_in"] for r in slowest),
     "slowest-calls: a callee that only slow calls have")
sys.exit(sum_up())
