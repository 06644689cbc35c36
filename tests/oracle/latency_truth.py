"""latency_truth.py PT-QUERY DB TEXT FUNCTION... - the percentiles of function-latency against the emulated machine's own
log of branches (`truthdump`, standard input). Times of branches are known to lie between two (TEXT: `pt-decode --text
-F tid,tsc_lo,tsc_hi,kind,from,to`), and so are then a call's time, and any order statistic of such times: the
truth's and function-latency's. Counts, and instructions of calls that did not enter the kernel, are exact. "N calls,
worst N %" says how far percentiles are off. The last line is "N passed, N failed"."""
import csv
import subprocess
import sys
from collections import defaultdict

sys.path.append("tests")
from check import check, same, sum_up  # noqa: E402

program, db, text, *functions = sys.argv[1:]
CALL_MAX = 8  # bytes of a call instruction


def query(*asked, **parameters):
    arguments = [program, db, *asked, "--format", "csv"] + [f"--param={k}={v}" for k, v in parameters.items()]
    out = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True).stdout
    return list(csv.DictReader(out.splitlines()))


rank = {"p50": 500, "p90": 900, "p99": 990, "p99_9": 999, "max": 1000}
(clock,) = query("--sql", "SELECT time_mult, time_shift FROM traces")
ns_per_tick = int(clock["time_mult"]) / (1 << int(clock["time_shift"]))


class Stack:
    """The calls of one thread."""
    def __init__(self):
        self.open, self.calls = [], defaultdict(list)

    def branch(self, kind, source, target, what):
        """what: of the call's branch, and then of the return's, goes with the call."""
        if kind.startswith("call"):
            self.open.append((target, source, what))
        elif kind == "ret":
            at = len(self.open) - 1
            while at >= 0 and not self.open[at][1] < target <= self.open[at][1] + CALL_MAX:
                at -= 1
            if at >= 0:
                called, _, begin = self.open[at]
                del self.open[at:]
                self.calls[called].append((begin, what))


truth, entered = Stack(), 0
for line in sys.stdin:
    f = line.split()
    if len(f) < 10 or f[9] not in ("PP", "P-", "-P"):
        continue
    entered += f[9] != "PP"  # the kernel's instructions are not in the trace
    truth.branch(f[5], int(f[6], 16), int(f[8], 16), (int(f[0]), int(f[4]), entered))
known = defaultdict(Stack)
for line in open(text):
    f = line.split()
    known[f[0]].branch(f[3], int(f[4], 16), int(f[5], 16), (int(f[1]), int(f[2])))

for function in functions:
    at = {int(r["ip"]) for r in query("--sql", f"SELECT ip FROM functions WHERE symbol = '{function}'")}
    calls = [c for a in at for c in truth.calls[a]]
    bounds = [c for a in at for k in known.values() for c in k.calls[a]]
    (row,) = [r for r in query("function-latency", function=function) if r["by"] == "all"]
    same((len(calls),) * 2, (int(row["calls"]), int(row["timed"])), "calls", function)
    same(len(calls), len(bounds), "calls of the text", function)
    check(len(calls) > 50, "there are many", function)
    times, worst = sorted((end[0] - begin[0]) * ns_per_tick for begin, end in calls), 0
    least = sorted((end[0] - begin[1]) * ns_per_tick for begin, end in bounds)
    most = sorted((end[1] - begin[0]) * ns_per_tick for begin, end in bounds)
    for name, per_mille in rank.items():
        k, got = -(-len(times) * per_mille // 1000) - 1, int(row[f"{name}_ns"])
        worst = max(worst, abs(got - times[k]) * 100 / times[k])
        check(least[k] - 1 <= got <= most[k] + 1, "percentiles lie where they must",
              f"{function} {name}: {got}, {least[k]:.0f} to {most[k]:.0f}, truth {times[k]:.0f}")
        # MTC and CYC are read to some ticks
        check(least[k] - 10 <= times[k] <= most[k] + 10, "so does the truth",
              f"{function} {name}: truth {times[k]:.0f}, {least[k]:.0f} to {most[k]:.0f}")
    slack = sorted((end[1] - end[0] + begin[1] - begin[0]) * ns_per_tick for begin, end in bounds)
    # The database's intervals are those of runs, at best as narrow.
    check(slack[-(-len(slack) // 2) - 1] <= int(row["uncertainty_ns"]) + 1, "uncertainty_ns says not too little",
          (function, slack[-(-len(slack) // 2) - 1], row["uncertainty_ns"]))
    if all(begin[2] == end[2] for begin, end in calls):
        insns = sorted(end[1] - begin[1] for begin, end in calls)
        same([insns[-(-len(insns) * p // 1000) - 1] for p in rank.values()], [int(row[f"{n}_insns"]) for n in rank],
             "percentiles of the instructions", function)
    print(f"{function}: {len(calls)} calls, worst {worst:.1f} %")
sys.exit(sum_up())
