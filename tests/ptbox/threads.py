"""threads.py FTRACE TEXT: whether each branch has the thread that ftrace's sched_switch says ran then.

FTRACE: /sys/kernel/tracing/trace with trace_clock x86-tsc. TEXT: pt-decode --text -F
cpu,tsc_lo,tsc_hi,tid,from,to. The event is written before the registers are switched, so branches within
WINDOW ticks of one are not judged. Prints "judged N, of another thread N, without time N", and whose they
were.
"""

import bisect
import collections
import re
import sys

WINDOW_TSC = 5000  # perf turns events of the one off and of the other on in between: 2,005 were seen

EVENT = re.compile(r".*\[(\d+)\]\s+\S+\s+(\d+): sched_switch: .*==> next_comm=.* next_pid=(\d+) ")
times, threads = collections.defaultdict(list), collections.defaultdict(list)
for line in open(sys.argv[1], errors="replace"):
    m = EVENT.match(line)
    if m:
        times[m[1].lstrip("0") or "0"].append(int(m[2]))
        threads[m[1].lstrip("0") or "0"].append(m[3])
judged = wrong = untimed = 0
whose = collections.Counter()
for line in open(sys.argv[2]):
    if line[0] == "#":
        continue
    cpu, low, high, tid, _ = line.split(None, 4)
    if low == "-" or high == "-":
        untimed += 1
        continue
    at = times[cpu]
    i = bisect.bisect_right(at, int(low) - WINDOW_TSC)
    if i == 0 or i != bisect.bisect_right(at, int(high) + WINDOW_TSC):
        continue
    judged += 1
    if tid != threads[cpu][i - 1]:
        wrong += 1
        whose[tid + " was " + threads[cpu][i - 1]] += 1
print(f"judged {judged}, of another thread {wrong}, without time {untimed}")
for pair, n in whose.most_common(5):
    print(f"  {pair}: {n}")
