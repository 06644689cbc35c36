"""vms_truth.py DB FTRACE TRUTHDUMP CPU cpu|tsc|why|threads|thieves|events: holds the views vmexits and vm_clocks, and the
queries of them, against what the kernel itself reported (ftrace, with the TSC as its clock) and the machine's
own log of one CPU, while tests/ptbox/vms.c ran. Prints how much was compared, and counts. cpu: the CPU was
traced; tsc: likewise, without KVM's tracepoint for TSC offsets; why: with those that say what exits were about; threads, thieves: the program's threads;
events: with Event Trace.

ftrace says which thread left its guest, where, why, and what the kernel did with it until it went on: who ran meanwhile,
what it polled and waited, what it injected. The log says when exactly, and with which VMCS.
"""
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict

sys.path.append("tests")
from check import check, sum_up  # noqa: E402

db_path, ftrace, truthdump, cpu, mode = sys.argv[1:]
threads = mode not in ("cpu", "tsc", "why")  # of one process: CPUs are not traced
program = os.environ["PT_BIN"] + "/pt-query"
db = sqlite3.connect(db_path)
db.row_factory = sqlite3.Row
counted = {}
PERCENTILES = (("p50_ns", 500), ("p90_ns", 900), ("p99_ns", 990), ("p99_9_ns", 999), ("max_ns", 1000))
LATE = 4000  # ticks: a tracepoint's time may be that much later than what it reports


def signed(n):
    return (n ^ 1 << 63) - (1 << 63)


def query(name, **params):
    args = [program, db_path, name, "--format", "json"] + [f"--param={k}={v}" for k, v in params.items()]
    return json.loads(subprocess.run(args, check=True, stdout=subprocess.PIPE).stdout)


def rows(sql):
    return [dict(r) for r in db.execute(sql)]


# ---- What the kernel reported ----
LINE = re.compile(r"^\s*(.*)-(\d+)\s+\[(\d+)\]\s+\S+\s+(\d+): (\w+): (.*)$")
reported = []
for line in open(ftrace, errors="replace"):
    m = LINE.match(line)
    if m:
        reported.append((int(m[4]), int(m[3]), int(m[2]), m[5], m[6]))
reported.sort(key=lambda e: e[0])


# What an exit was about: by which tracepoint, of which reasons.
ABOUT = {"kvm_msr": (("MSR_READ", "MSR_WRITE"), r"msr_(?:read|write) ([0-9a-f]+) "),
         "kvm_page_fault": (("EPT_VIOLATION",), r"vcpu \d+ rip \S+ address 0x([0-9a-f]+) "),
         "kvm_cpuid": (("CPUID",), r"func ([0-9a-f]+) "), "kvm_hypercall": (("VMCALL",), r"nr 0x([0-9a-f]+) ")}


def detail(t):
    """The SDM's tables "Exit Qualification for ..." of the reasons that vms.c has."""
    q = t.qualification
    if t.reason == "IO_INSTRUCTION":
        return f"{'in' if q & 8 else 'out'} {q >> 16:#x}, {(q & 7) + 1} bytes"
    if t.reason == "EPT_VIOLATION":
        access = [w for bit, w in enumerate(("read", "write", "execute")) if q >> bit & 1]
        access += ["of a page table"] if q & 0x80 and not q & 0x100 else []
        return " ".join(access + ([f"at {t.operand:#x}"] if t.operand is not None else []))
    if t.reason == "CR_ACCESS":
        return ("mov to cr", "mov from cr")[q >> 4 & 3] + str(q & 15)
    if t.operand is None:
        return None
    return {"CPUID": f"leaf {t.operand:#x}", "VMCALL": f"number {t.operand}"}.get(t.reason, f"MSR {t.operand:#x}")


class Exit:
    def __init__(self, tid, cpu, tsc, text):
        m = re.match(r"vcpu (\d+) reason (\S+) rip (0x[0-9a-f]+) info1 (0x[0-9a-f]+) info2 (0x[0-9a-f]+)", text)
        self.tid, self.cpu, self.tsc, self.reason = tid, cpu, tsc, m[2]
        self.rip, self.vectoring, self.undelivered = int(m[3], 16), int(m[5], 16), False
        self.entry = None
        self.out, self.off, self.off_since, self.thief = 0, 0, None, None
        self.user, self.waited, self.nested, self.reflected = False, None, False, False
        self.irqs, self.entry_cpu = [], None
        self.qualification, self.operand = int(m[4], 16), None


last_exit = {}
kvm_exits, open_exit, writes, inner = [], {}, defaultdict(list), set()
for tsc, on, tid, name, text in reported:
    t = open_exit.get(tid)
    if name == "kvm_exit":
        t = open_exit[tid] = Exit(tid, on, tsc, text)
        t.nested = tid in inner
        # SDM, "IDT-vectoring information": while it was delivered the guest was left again, so the guest has
        # not seen it.
        if t.vectoring >> 31 & 1 and tid in last_exit:
            last_exit[tid].undelivered = True
        last_exit[tid] = t
        kvm_exits.append(t)
    elif name == "kvm_entry" and t:
        t.entry, t.entry_cpu = tsc, on
        del open_exit[tid]
    elif name == "kvm_nested_vmenter":
        inner.add(tid)
    elif name == "kvm_nested_vmexit_inject":
        inner.discard(tid)
        if t:
            t.reflected = True
    elif name == "kvm_write_tsc_offset":
        m = re.match(r"vcpu=(\d+) prev=(\d+) next=(\d+)", text)
        writes[tid].append((tsc, int(m[2]), int(m[3])))
    elif name == "sched_switch":
        m = re.match(r"prev_comm=.* prev_pid=(\d+) .* next_comm=(.*) next_pid=(\d+) ", text)
        before, after = int(m[1]), int(m[3])
        t = open_exit.get(before)
        if t:
            t.out, t.off_since = t.out + 1, tsc
            t.thief = t.thief if t.thief is not None else after
        t = open_exit.get(after)
        if t and t.off_since:
            t.off += tsc - t.off_since
            t.off_since = None
    elif t:
        if name == "kvm_userspace_exit":
            t.user = True
        elif name == "kvm_inj_virq":
            t.irqs.append(int(re.match(r"IRQ 0x([0-9a-f]+)", text)[1], 16))
        elif name in ABOUT and t.reason in ABOUT[name][0]:
            m = re.match(ABOUT[name][1], text)
            t.operand = int(m[1], 16) if m and t.operand is None else t.operand
        elif name == "kvm_vcpu_wakeup":
            m = re.match(r"(wait|poll) time (\d+) ns, polling (\w+)", text)
            t.waited = m[1] == "wait"

# ---- What was decoded ----
exits = rows("SELECT * FROM vmexits WHERE tsc IS NOT NULL ORDER BY tsc")
check(len(exits) > 100, "there are exits", len(exits))
first = exits[0]["tsc"] if exits else 0
last = exits[-1]["tsc"] if exits else 0
by_tid = defaultdict(list)
for e in exits:
    by_tid[e["tid"]].append(e)
real = defaultdict(list)
for t in kvm_exits:
    if first <= t.tsc <= last + LATE:
        real[t.tid].append(t)
check(sorted(by_tid) == sorted(real), "vCPU threads", (sorted(by_tid), sorted(real)))
pairs = []
for tid in sorted(real):
    ours, theirs = by_tid[tid], real[tid]
    check(len(ours) == len(theirs), f"{tid}: exits", (len(ours), len(theirs)))
    pairs += list(zip(ours, theirs))


def differ(what, of, ours, theirs):
    """Of all pairs `of`: both say the same. How many there were is printed: none is nothing seen."""
    of = list(of)
    bad = [(e["tid"], e["tsc"], ours(e), theirs(t)) for e, t in of if ours(e) != theirs(t)]
    check(not bad, f"{what} ({len(of)} exits)", f"{len(bad)} differ: {bad[:3]}")
    counted[what] = len(of)


differ("where the guest was", pairs, lambda e: e["guest_ip"], lambda t: t.rip)
differ("the CPU", pairs, lambda e: e["cpu"], lambda t: t.cpu)
# Of a nested guest's exit that its own hypervisor handles, KVM calls no handler.
differ("why", [(e, t) for e, t in pairs if not t.reflected], lambda e: e["kvm_name"], lambda t: t.reason)
differ("why, reflected", [(e, t) for e, t in pairs if t.reflected and e["kvm_name"]] or pairs[:0], lambda e: e["kvm_name"],
       lambda t: t.reason)
whole = [(e, t) for e, t in pairs if not e["gap"] and t.entry]
check(len(whole) > 0.9 * len(pairs), "most are whole", (len(whole), len(pairs)))
far = [(e["tsc"], t.tsc) for e, t in pairs if not e["tsc"] <= t.tsc <= e["tsc"] + LATE]
check(not far, "when", far[:3])
differ("scheduled out", whole, lambda e: bool(e["scheduled_out"]), lambda t: t.out > 0)
differ("to user space", whole, lambda e: bool(e["to_userspace"]), lambda t: t.user)
gone = [p for p in whole if p[1].out]
if threads:
    differ("who ran first meanwhile, if known", [p for p in gone if p[0]["stolen_by_tid"]], lambda e: e["stolen_by_tid"],
           lambda t: t.thief)
else:
    differ("who ran first meanwhile", [p for p in gone if p[1].thief], lambda e: e["stolen_by_tid"], lambda t: t.thief)
    differ("nobody did", [p for p in gone if p[1].thief == 0], lambda e: e["stolen_by_tid"] or 0, lambda t: 0)
off = [(e["tsc"], e["off_cpu_tsc"], t.off) for e, t in gone
       if e["off_cpu_tsc"] is None or abs(e["off_cpu_tsc"] - t.off) > LATE * t.out]
check(not off, "how long it was off its CPU", off[:3])
counted["how long it was off its CPU"] = len(gone)
halted = [(e, t) for e, t in whole if t.reason == "HLT"]
if halted:
    check({t.waited for e, t in halted} == {True, False}, "halts that waited, and that did not",
          Counter(t.waited for e, t in halted))
    differ("halts: waited, off the CPU", [p for p in halted if p[1].waited is not None], lambda e: bool(e["scheduled_out"]),
           lambda t: t.waited)
    differ("halts: did not wait, had polled", [p for p in halted if p[1].waited is False], lambda e: e["halt_polled"],
           lambda t: 1)
differ("moved to another CPU", whole, lambda e: bool(e["migrated"]), lambda t: t.cpu != t.entry_cpu)
if mode != "threads":
    # Event Trace says what the guest has seen of it.
    of = [p for p in whole if p[1].irqs and not (mode == "events" and p[1].undelivered)]
    differ("injected", of, lambda e: e["injected_vector"], lambda t: t.irqs[-1])
    differ("nothing injected", [p for p in whole if not p[1].irqs], lambda e: e["injected_vector"], lambda t: None)
if mode == "why":
    has = [p for p in whole if p[1].reason not in ("EXTERNAL_INTERRUPT", "EXCEPTION_NMI")]
    # SQLite's integers are signed: an address of the upper half, which a guest invalidates, is negative.
    differ("the exit qualification", has, lambda e: e["qualification"], lambda t: signed(t.qualification))
    differ("what it was about", [p for p in has if p[1].operand is not None], lambda e: e["operand"], lambda t: signed(t.operand))
    differ("what it was about, in words", has, lambda e: e["detail"], detail)
differ("nested guests' exits", whole, lambda e: e["nested"], lambda t: int(t.nested))

# ---- Whose VMCS ----
vmcs, log, entries = None, [], []
dump = subprocess.Popen(truthdump.split(), stdout=subprocess.PIPE, text=True)
for line in dump.stdout:
    if line[0] != "S" and " vmexit " not in line and " vmentry " not in line:
        continue
    f = line.split()
    if f[0] == "STATE":
        vmcs = int(f[f.index("vmcs") + 1], 16)
    elif len(f) > 11 and f[5] == "vmexit":
        log.append((int(f[0]), vmcs, int(f[11])))
    elif len(f) > 5 and f[5] == "vmentry":
        entries.append((int(f[0]), vmcs))
check(dump.wait() == 0, "the log")
if mode == "events":
    differ("Event Trace says why", pairs, lambda e: e["reason_source"], lambda t: "event_trace")
mine = [e for e in exits if e["cpu"] == int(cpu)]
near = []
i = 0
for e in mine:  # the log's exit within what is uncertain
    while i < len(log) and log[i][0] + 1 < e["tsc"]:
        i += 1
    ok = i < len(log) and log[i][0] <= e["tsc"] + (e["uncertainty_tsc"] or 0) + 1
    near.append((e, log[i] if ok else None))
check(all(n for _, n in near), "the log has each exit, within its uncertainty", [e["tsc"] for e, n in near if not n][:3])
check(all(n[1] in (e["vmcs"], (e["vmcs"] or 0) << 12) for e, n in near if n), "the log's VMCS",
      [(e["tsc"], e["vmcs"], n) for e, n in near if n and n[1] not in (e["vmcs"], (e["vmcs"] or 0) << 12)][:3])
check(all(n[2] == e["reason"] for e, n in near if n and e["reason"] is not None), "the log's reasons",
      [(e["tsc"], e["reason"], n) for e, n in near if n and n[2] != e["reason"]][:3])
# Several VMs had it, one after the other; the log says so, too.
users = defaultdict(set)
for e in exits:
    users[e["vmcs"]].add(e["pid"])
counted["VMCSs that were used again"] = sum(len(v) > 1 for v in users.values())

# ---- Clocks: each offset that KVM wrote, from when on; by its tracepoint, which was recorded ----
spans = defaultdict(list)
for r in rows("SELECT * FROM vm_clocks ORDER BY tsc"):
    spans[r["machine"], r["vmcs"]].append(r)
begins = {}
for e in exits:
    begins.setdefault(e["pid"], e["tsc"])
of_vm = {e["pid"]: e["machine"] for e in exits}
vm_of = {tid: pid for tid, pid in ((e["tid"], e["pid"]) for e in exits)}
written = defaultdict(list)  # of a VM: by the thread that makes the vCPU, and by the vCPU's own
for tid, w in writes.items():
    pid = vm_of.get(tid, tid)
    if pid in of_vm:
        written[pid] += [(tsc, after - (after >> 63 << 64)) for tsc, _, after in w]
changed = 0
for pid, w in sorted(written.items()) if not threads else ():
    w.sort()
    wanted = [(None, after) for tsc, after in w if tsc < begins[pid]][-1:]
    for tsc, after in w:
        if tsc > begins[pid] and after != wanted[-1][1]:
            wanted.append((tsc, after))
            changed += 1
    mine = {k: v for k, v in spans.items() if k[0] == of_vm[pid]}
    check(mine, f"{pid}: it has a clock", spans.keys())
    for (_, vmcs), got in mine.items():
        if mode == "tsc":  # what no packet shows is not known; of what is, since when
            shown = {offset: t for t, offset in wanted}
            check(all(r["offset"] in shown for r in got), f"{pid}: offsets of VMCS {vmcs:x}", (got, wanted))
            late = [(r["tsc"], shown.get(r["offset"])) for r in got[1:]
                    if abs(r["tsc"] - (shown.get(r["offset"]) or 0)) > LATE]
            check(not late, f"{pid}: since when, by KVM's function", late)
            counted["offsets that packets show"] = counted.get("offsets that packets show", 0) + len(got) - 1
            continue
        check([r["offset"] for r in got] == [o for _, o in wanted], f"{pid}: offsets of VMCS {vmcs:x}",
              ([r["offset"] for r in got], wanted))
        check(all(t is None or abs(r["tsc"] - t) <= LATE for r, (t, _) in zip(got, wanted)), f"{pid}: since when",
              ([r["tsc"] for r in got], wanted))
counted["offsets that changed"] = changed

# ---- Who stole the vCPU ----
clock = rows("SELECT time_mult, time_shift FROM trace")[0]


def ns(tsc):
    return None if tsc is None else (tsc * clock["time_mult"]) >> clock["time_shift"]


stolen = defaultdict(list)
for e, t in gone:
    if t.reason not in ("HLT", "MWAIT") and not t.user:
        stolen[e["machine"], None if threads else t.thief or None].append(t.off)
got = {(r["machine"], r["stolen_by_tid"]): r for r in query("vcpu-stolen") if r["how"] == "preempted"}
if threads:
    stolen.clear()
else:
    check(sorted(got, key=str) == sorted(stolen, key=str), "vcpu-stolen: by whom",
          (sorted(got, key=str), sorted(stolen, key=str)))
for key, values in stolen.items():
    r, values = got.get(key), sorted(values)
    if not r:
        continue
    check(r["times"] == len(values), f"vcpu-stolen {key}: times", (r["times"], len(values)))
    for name, per_mille in PERCENTILES:
        want = ns(values[-(-len(values) * per_mille // 1000) - 1])
        check(r[name] is not None and abs(r[name] - want) <= ns(2 * LATE), f"vcpu-stolen {key}: {name}", (r[name], want))

# ---- How long: each reason's exits of a VM, by the log, up to the VM's next entry with one of its VMCSs ----
if not threads:
    own = defaultdict(set)
    for e in exits:
        own[e["pid"]].add(e["vmcs"])
    took, slack = defaultdict(list), defaultdict(int)
    at = 0
    for e, n in near:
        while at < len(entries) and entries[at][0] < n[0]:
            at += 1
        end = next((t for t, v in entries[at:] if v in own[e["pid"]]), None)
        if e["latency_tsc"] is not None:
            key = e["machine"], e["reason"]
            took[key].append(end - n[0])
            slack[key] = max(slack[key], e["latency_uncertainty_tsc"] + 2)
    got = {(r["machine"], r["reason"]): r for r in query("vmexit-latency") if r["timed"]}
    check(sorted(got, key=str) == sorted(took, key=str), "vmexit-latency: VMs and reasons",
          set(got).symmetric_difference(took))
    for key, values in took.items():
        r, values = got.get(key), sorted(values)
        if not r:
            continue
        check(r["timed"] == len(values), f"vmexit-latency {key}: exits", (r["timed"], len(values)))
        for name, per_mille in PERCENTILES:
            want = values[-(-len(values) * per_mille // 1000) - 1]
            check(abs(r[name] - ns(want)) <= ns(slack[key]) + 1, f"vmexit-latency {key}: {name}", (r[name], ns(want)))
    counted["exits timed"] = sum(map(len, took.values()))
check(query("vm-check") == [], "vm-check", query("vm-check")[:2])
for what, n in counted.items():
    print(f"{n:6} {what}")
sys.exit(sum_up())
