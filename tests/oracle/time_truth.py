#!/usr/bin/env python3
"""time_truth.py TRUTH GOT MHZ MEDIAN P99: how far times are from the truth.

TRUTH: truthdump's lines of one CPU; GOT: "tsc from to" lines of pt-decode --text, the same branches in the same order.
Prints percentiles of (GOT - TRUTH) in nanoseconds; exit status 1 when they are off by more than MEDIAN in the median, or P99
at the 99th percentile, when a time goes backwards, or the branches differ.
"""
import sys


def truth(path):
    for line in open(path):
        w = line.split()
        if w[0].isdigit() and len(w) > 9 and w[5] != "jcc-n" and w[9] != "--":
            before, after = w[9][0] == "P", w[9][1] == "P"
            if before and after and w[5] in ("vmexit", "vmentry"):
                yield int(w[0]), w[6], "0"
                yield int(w[0]), "0", w[8]
            else:
                yield int(w[0]), w[6] if before else "0", w[8] if after else "0"
        elif w[0] == "TRACEON" and int(w[2], 16) & 4:
            yield int(w[6]), "0", w[12]
        elif w[0] == "TRACEOFF":
            yield int(w[1]), w[5], "0"


def got(path):
    for line in open(path):
        if not line.startswith("#"):
            w = line.split()
            yield int(w[0]), w[1], w[2]


def main():
    mhz = float(sys.argv[3])
    median, p99 = float(sys.argv[4]), float(sys.argv[5])
    errors, last, bad = [], 0, 0
    for n, (t, g) in enumerate(zip(truth(sys.argv[1]), got(sys.argv[2]))):
        if t[1:] != g[1:]:
            print(f"branch {n}: {t} in the truth, {g} here")
            sys.exit(1)
        if g[0] < last:
            bad += 1
        last = g[0]
        errors.append((g[0] - t[0]) * 1000.0 / mhz)
    errors.sort()
    at = lambda p: errors[min(len(errors) - 1, int(len(errors) * p / 100))]
    size = sorted(abs(e) for e in errors)
    abs_at = lambda p: size[min(len(size) - 1, int(len(size) * p / 100))]
    print(
        f"branches {len(errors)} ns p1 {at(1):.0f} median {at(50):.0f} p99 {at(99):.0f} max {errors[-1]:.0f}"
        f" |median| {abs_at(50):.0f} |p99| {abs_at(99):.0f} backwards {bad}"
    )
    sys.exit(bad > 0 or abs_at(50) > median or abs_at(99) > p99)


main()
