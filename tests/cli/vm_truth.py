"""vm_truth.py PT-QUERY DB TRUTH - compares what pt-query says of a database with the truth that
tests/tools/mkvmrecords wrote, worked out here from scratch. The last line is "N passed, N failed"."""
import csv
import json
import subprocess
import sys
from collections import Counter, defaultdict

sys.path.append("tests")
from check import check, same, sum_up  # noqa: E402

program, db, truth = sys.argv[1:]
ZERO, MULT, SHIFT = -616, 699050667, 31  # mkvmrecords' clock
UNKNOWN = 15                             # flags with which nothing is timed


def ns(tsc):
    return (tsc * MULT) >> SHIFT


def time_ns(tsc):
    return ZERO + ns(tsc)


def query(name, **params):
    args = [program, db, name, "--format", "json"] + [f"--param={k}={v}" for k, v in params.items()]
    return json.loads(subprocess.run(args, check=True, stdout=subprocess.PIPE).stdout)


def percentiles(values):
    """Nearest rank: the smallest value that at least p % of all are not above."""
    values = sorted(values)
    pick = {}
    for name, per_mille in (("p50_ns", 500), ("p90_ns", 900), ("p99_ns", 990), ("p99_9_ns", 999), ("max_ns", 1000)):
        at = -(-len(values) * per_mille // 1000)
        pick[name] = ns(values[at - 1]) if values else None
    return pick


def same_percentiles(what, values, row, of=""):
    same(percentiles(values), {k: row[k] for k in percentiles(values)}, f"{what}: percentiles", of)


def number(text):
    return int(text) if text else None


exits, guest_runs, timers, events = [], [], [], []
for row in csv.reader(open(truth)):
    if row[0] == "exit":
        f = [number(x) for x in row[1:11]]
        exits.append(dict(zip(("id", "vcpu", "reason", "exit", "entry", "flags", "insns", "cycles", "off", "user"), f),
                          thief=row[11], symbol=row[12]))
    elif row[0] == "guest_run":
        guest_runs.append(dict(zip(("id", "vcpu", "entry", "exit", "flags", "insns", "cycles"), map(number, row[1:]))))
    elif row[0] == "timer":
        timers.append([int(x) for x in row[1:]])
    else:
        events.append((int(row[1]), row[2]))
for x in exits:
    x["latency"] = None if x["flags"] & UNKNOWN else x["entry"] - x["exit"]
for s in guest_runs:
    s["latency"] = None if s["flags"] & UNKNOWN else s["exit"] - s["entry"]


def known(rows):
    return [r["latency"] for r in rows if r["latency"] is not None]


def grouped(rows, key):
    groups = defaultdict(list)
    for r in rows:
        groups[key(r)].append(r)
    return groups


def check_latency(name, rows, key, row_key, count, **params):
    groups = grouped(rows, key)
    got = query(name, **params)
    same(sorted(groups, key=str), sorted((row_key(r) for r in got), key=str), f"{name}: groups")
    total = sum(known(rows))
    for r in got:
        group = groups.get(row_key(r), [])
        of, what = row_key(r), f"{name} {params or ''}"
        same((len(group), len(known(group))), (r[count], r["timed"]), f"{what}: how many", of)
        same_percentiles(what, known(group), r, of)
        same(ns(sum(known(group))) if known(group) else None, r["total_ns"], f"{what}: total", of)
        share = "guest_percent" if name == "vmentry-latency" else "exit_percent"
        same(round(100 * sum(known(group)) / total, 2) if known(group) else None, r[share], f"{what}: share", of)
    return got


# The view, row by row.
view = [json.loads(line) for line in subprocess.run(
    ["sqlite3", db, """SELECT json_object('id', id, 'vcpu', vcpu, 'reason', reason, 'exit', tsc, 'entry', tsc_end,
    'latency', latency_ns, 'time', time_ns, 'insns', host_insns, 'cycles', host_cycles, 'off', off_cpu_tsc, 'user', userspace_tsc,
    'out', scheduled_out, 'qemu', to_userspace, 'symbol', guest_symbol, 'gap', gap) FROM vmexits ORDER BY id"""],
    check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()]
same(len(exits), len(view), "vmexits: rows")
for x, v in zip(exits, view):
    gap = x["latency"] is None
    same({
        "id": x["id"], "vcpu": x["vcpu"], "reason": x["reason"], "exit": x["exit"], "entry": x["entry"],
        "latency": None if gap else ns(x["latency"]), "time": time_ns(x["exit"]),
        "insns": None if gap else x["insns"], "cycles": None if gap else x["cycles"], "off": x["off"], "user": x["user"],
        "out": x["flags"] >> 5 & 1, "qemu": x["flags"] >> 7 & 1, "symbol": x["symbol"], "gap": int(gap)}, v,
                 f"vmexit {x['id']}")

got = check_latency("vmexit-latency", exits, lambda x: x["reason"], lambda r: r["reason"], "exits")
inside, outside = sum(known(guest_runs)), sum(known(exits))
for r in got:
    part = known([x for x in exits if x["reason"] == r["reason"]])
    same(round(100 * sum(part) / (inside + outside), 2), r["vcpu_percent"], "vmexit-latency: vcpu_percent", r["reason"])
one = [x for x in exits if x["vcpu"] == 1]
check_latency("vmexit-latency", one, lambda x: x["reason"], lambda r: r["reason"], "exits", vcpu=1)
same([], query("vmexit-latency", machine="vm2"), "another VM has none")
check_latency("exits-by-function", exits, lambda x: (x["symbol"], x["reason"]), lambda r: (r["guest_symbol"], r["reason"]),
              "exits", limit=1000)
rip = query("exits-by-rip", limit=100000)
same(len(exits), sum(r["exits"] for r in rip), "exits-by-rip: all")
same(Counter((x["symbol"], x["reason"]) for x in exits),
     sum((Counter({(r["guest_symbol"], r["reason"]): r["exits"]}) for r in rip), Counter()), "exits-by-rip: functions")

# What ended a guest run is the next exit of that vCPU: the n-th exit follows the n-th guest run.
after = {v: iter([x for x in exits if x["vcpu"] == v]) for v in {s["vcpu"] for s in guest_runs}}
names = {r["reason"]: r["reason_name"] for r in got}
for s in guest_runs:
    x = next(after[s["vcpu"]], None)
    s["ended"] = names[x["reason"]] if x else None
# Reasons without a name share one, so groups are compared where there is one.
named = [s for s in guest_runs if s["ended"]]
rows = [r for r in query("vmentry-latency") if r["ended_by"]]
same(Counter(s["ended"] for s in named), Counter({r["ended_by"]: r["guest_runs"] for r in rows}),
     "vmentry-latency: guest runs")
for r in rows:
    same_percentiles("vmentry-latency", known([s for s in named if s["ended"] == r["ended_by"]]), r, r["ended_by"])

slow = query("slowest-exits", limit=30)
same(sorted(known(exits), reverse=True)[:30] and [ns(v) for v in sorted(known(exits), reverse=True)[:30]],
     [r["latency_ns"] for r in slow], "slowest-exits")
by_id = {x["id"]: x for x in exits}
for r in slow:
    x = by_id[r["id"]]
    # All of the host's instructions in these made-up VM exits lie in paths without tails.
    if x["insns"] is not None:
        same(x["insns"], sum(int(f.rsplit(" ", 1)[1]) for f in r["host_functions"].split(", ")),
             f"slowest-exits {r['id']}: what the host did")
same({"HLT"}, {r["kvm_name"] for r in query("slowest-exits", reason="HLT")}, "slowest-exits of a reason")

for r in query("vcpu-time"):
    mine = [x for x in exits if x["vcpu"] == r["vcpu"]]
    timed = [x for x in mine if None not in (x["latency"], x["off"])]
    guest = [s for s in guest_runs if s["vcpu"] == r["vcpu"]]
    off, user = sum(x["off"] for x in timed), sum(x["user"] for x in timed)
    what = f"vcpu-time {r['vcpu']}"
    same([ns(sum(known(guest))), ns(sum(known(timed)) - off - user), ns(user), ns(off), len(mine)],
         [r[k] for k in ("guest_ns", "host_ns", "userspace_ns", "off_cpu_ns", "exits")], what)
    check(len(timed) < len(known(mine)), f"{what}: there are exits off the CPU for an unknown time")
    same(len(mine) - len(timed) + len(guest) - len(known(guest)), r["not_timed"], f"{what}: not timed")
    for column, rows in (("guest_ipc", guest), ("host_ipc", mine)):
        counted = [x for x in rows if None not in (x["latency"], x["cycles"], x["insns"])]
        same(round(sum(x["insns"] for x in counted) / sum(x["cycles"] for x in counted), 2), r[column], f"{what}: {column}")

stolen = [x for x in exits if x["flags"] & 32]
for whole in (0, 1):
    chosen = [x for x in stolen if whole or x["reason"] != 12 and not x["flags"] & 128]
    groups = grouped(chosen, lambda x: (x["vcpu"], x["thief"], "halted" if x["reason"] == 12 else
                                        "in user space" if x["flags"] & 128 else "preempted"))
    rows = {(r["vcpu"], r["stolen_by_comm"].split("/")[0], r["how"]): r for r in query("vcpu-stolen", all=whole)}
    same(sorted(groups), sorted(rows), f"vcpu-stolen {whole}: groups")
    for key, r in rows.items():
        same_percentiles(f"vcpu-stolen {whole}", [x["off"] for x in groups[key] if None not in (x["latency"], x["off"])],
                         r, key)
        same(len(groups[key]), r["times"], f"vcpu-stolen {whole}: times", key)

# Causes in VM exits that were not wholly seen are no cases.
whole = {}
for x in exits:
    if x["latency"] is not None:
        whole[x["vcpu"], x["entry"]] = x
cases = Counter()
for vcpu, cause, handled in timers:
    x = whole.get((vcpu, handled))
    if x:
        cases[vcpu, handled - cause] += 1
rows = query("interrupt-latency")
for vcpu in {v for v, _ in cases}:
    values = list(Counter({k: n for k, n in cases.items() if k[0] == vcpu}).elements())
    same(len(values), sum(r["cases"] for r in rows if r["vcpu"] == vcpu), f"interrupt-latency {vcpu}: cases")
    same(ns(max(v for _, v in values)), max(r["max_ns"] for r in rows if r["vcpu"] == vcpu),
         f"interrupt-latency {vcpu}: worst")
    halted = [v for (c, v), n in cases.items() if c == vcpu for _ in range(n)]
    host = [r for r in rows if r["vcpu"] == vcpu and r["cause"] == "host handler"][0]
    exact = [handled - cause for v, cause, handled in timers
             if v == vcpu and (vcpu, handled) in whole and cause != whole[vcpu, handled]["exit"]]
    same(len(exact), host["cases"], f"interrupt-latency {vcpu}: after HLT")
    same_percentiles(f"interrupt-latency {vcpu}: after HLT", exact, host)

for ms in (0.01, 1, 10):
    step = int(ms * 1000000)
    rows = {r["time_ns"]: r for r in query("timeline", ms=ms)}
    guest, host, count = Counter(), Counter(), Counter(time_ns(x["exit"]) // step * step for x in exits)
    worst = defaultdict(int)
    for spans, into in ((guest_runs, guest), (exits, host)):
        for s in spans:
            if s["latency"] is None:
                continue
            a, b = (s["entry"], s["exit"]) if into is guest else (s["exit"], s["entry"])
            a, b = time_ns(a), time_ns(b)
            if into is host:
                worst[a // step * step] = max(worst[a // step * step], ns(s["latency"]))
            while a < b:
                cut = min(b, a // step * step + step)
                into[a // step * step] += cut - a
                a = cut
    same(count, Counter({k: r["exits"] for k, r in rows.items() if r["exits"]}), f"timeline {ms}: exits")
    same(guest, Counter({k: r["guest_ns"] for k, r in rows.items() if r["guest_ns"]}), f"timeline {ms}: guest")
    same(host, Counter({k: r["exit_ns"] for k, r in rows.items() if r["exit_ns"]}), f"timeline {ms}: host")
    same(worst, {k: r["latency_max_ns"] for k, r in rows.items() if r["latency_max_ns"]}, f"timeline {ms}: longest")
    same(len(events), sum(r["events"] for r in rows.values()), f"timeline {ms}: events")

# The slowest exit, of all and of each reason, a given one; and the median one beside it.
def check_why(of, **params):
    timed = [x for x in exits if x["latency"] is not None]
    group = timed if of is None else [x for x in timed if x["reason"] == of]
    slow = exits[params["exit"] - 1] if "exit" in params else min(group, key=lambda x: (-x["latency"], x["id"]))
    alike = sorted((x for x in timed if x["reason"] == slow["reason"]), key=lambda x: (x["latency"], x["id"]))
    median = alike[-(-len(alike) // 2) - 1] if alike else None
    rows = query("why-slow", limit=100000, **params)
    got = {r["name"]: (r["slow"], r["median"]) for r in rows if r["what"] != "function"}
    for name, value in (("id", lambda x: x["id"]), ("time_ns", lambda x: time_ns(x["exit"])),
                        ("latency_ns", lambda x: None if x["latency"] is None else ns(x["latency"])),
                        ("off_cpu_ns", lambda x: None if x["off"] is None else ns(x["off"])),
                        ("userspace_ns", lambda x: None if x["user"] is None else ns(x["user"])),
                        ("guest_symbol", lambda x: x["symbol"]),
                        ("host_insns", lambda x: None if x["latency"] is None else x["insns"])):
        same((value(slow), value(median)), got[name], f"why-slow: {name}", params)
    thief = got["stolen_by"][0]
    check(slow["thief"] in (thief or ""), "why-slow: stolen_by", (slow, thief))
    for side in ("slow", "median"):
        x = slow if side == "slow" else median
        if x["latency"] is not None and x["insns"] is not None:
            same(x["insns"], sum(r[side] or 0 for r in rows if r["what"] == "function"),
                 f"why-slow: the functions' instructions, {side}", params)
    more = [r["more"] for r in rows if r["what"] == "function"]
    same(sorted(more, reverse=True), more, "why-slow: what is more comes first", params)


check_why(None)
for reason in sorted({x["reason"] for x in exits if x["reason"] is not None and x["latency"] is not None}):
    check_why(reason, reason=reason)
check_why(None, exit=77)
same([], query("why-slow", exit=10**9), "why-slow: there is no such exit")

merged = query("merged-events", limit=10000000)
expected = sorted([time_ns(t) for t,
                  _ in events] + [time_ns(x["exit"]) for x in exits] + [time_ns(s["entry"]) for s in guest_runs])
same(expected, [r["time_ns"] for r in merged], "merged-events: in order")
same([None] + [b - a for a, b in zip(expected, expected[1:])], [r["ts_diff_ns"] for r in merged], "merged-events: ts_diff")
same(Counter(n for _, n in events), Counter(r["name"] for r in merged if ":" in r["name"]), "merged-events: names")
same(merged[:50], query("merged-events", limit=50), "merged-events: the first")
after = merged[len(merged) // 2]["time_ns"]
same([r["time_ns"] for r in merged if r["time_ns"] >= after][:20],
     [r["time_ns"] for r in query("merged-events", limit=20, after=after)], "merged-events: from a time on")
same([], query("vm-check"), "vm-check")
clocks = query("vm-clocks")
same([(0, -1000000, 1.0, "solved"), (1, -1000001, 1.5, "container")],
     [(c["vcpu"], c["offset"], c["scale"], c["source"]) for c in clocks[:2]], "vm-clocks")
folded = query("folded", percent=0)
same(sum(s["insns"] for s in guest_runs), sum(r["instructions"] for r in folded if "[guest vm1]" in r["stack"]),
     "folded: the guests' instructions")
same(True, any(r["stack"].startswith(
    "CPU 0/KVM;kvm_arch_vcpu_ioctl_run;vmx_vcpu_enter_exit;[guest vm1];work;main") for r in folded), "folded: the guest stands on its vCPU")
sys.exit(sum_up())
