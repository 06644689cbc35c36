#!/usr/bin/env python3
"""ipc_truth.py MTC.DB CYC.DB NAME=VALUE...: cycles estimated from MTC packets against those that CYC packets
counted, of two recordings of the same execution.

Both come from the view ipc. Prints stretches, unknown, and in per mille how far the sums over all estimated
stretches are from those of the counted ones in the same time: cycles, insns; and cycles_median, cycles_p99:
how far single stretches are. NAME=VALUE: exit status 1 when the figure is more than that (stretches: less).
"""
import bisect
import sqlite3
import sys


def rows(path, source):
    query = "SELECT tsc, tsc_end, insn_count, cyc_count FROM ipc WHERE source = ? ORDER BY run"
    return sqlite3.connect(path).execute(query, (source,)).fetchall()


def main():
    counted = rows(sys.argv[2], "cyc")
    at, insns, cycles = [counted[0][0]], [0], [0]
    for _, end, insn_count, cyc_count in counted:
        at.append(end)
        insns.append(insns[-1] + insn_count)
        cycles.append(cycles[-1] + cyc_count)

    def sum_at(sums, tsc):
        i = bisect.bisect_right(at, tsc) - 1
        if i + 1 >= len(at) or at[i + 1] == at[i]:
            return sums[i]
        return sums[i] + (sums[i + 1] - sums[i]) * (tsc - at[i]) / (at[i + 1] - at[i])

    estimated = [r for r in rows(sys.argv[1], "mtc") if r[1] <= at[-1]]
    known = [r for r in estimated if r[3] is not None]
    off = []
    sums = [0.0] * 4
    for tsc, end, insn_count, cyc_count in known:
        true_insns = sum_at(insns, end) - sum_at(insns, tsc)
        true_cycles = sum_at(cycles, end) - sum_at(cycles, tsc)
        for i, v in enumerate((insn_count, true_insns, cyc_count, true_cycles)):
            sums[i] += v
        off.append(1000 * abs(cyc_count - true_cycles) / true_cycles if true_cycles else 1000)
    off.sort()
    figures = {
        "stretches": len(known),
        "unknown": len(estimated) - len(known),
        "insns": 1000 * abs(sums[0] / sums[1] - 1) if sums[1] else 1000,
        "cycles": 1000 * abs(sums[2] / sums[3] - 1) if sums[3] else 1000,
        "cycles_median": off[len(off) // 2] if off else 1000,
        "cycles_p99": off[len(off) * 99 // 100] if off else 1000,
    }
    print(" ".join(f"{k} {v:.1f}" for k, v in figures.items()))
    bad = False
    for name, limit in (a.split("=") for a in sys.argv[3:]):
        bad |= figures[name] < float(limit) if name == "stretches" else figures[name] > float(limit)
    sys.exit(bad)


main()
