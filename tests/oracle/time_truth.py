#!/usr/bin/env python3
"""time_truth.py TRUTH GOT MHZ MEDIAN P99 RESOLUTION UNSURE: how far times are from the truth.

TRUTH: truthdump's lines of one CPU; GOT: "tsc tsc_lo tsc_hi class from to" lines of pt-decode --text, the
same branches in the same order. Prints percentiles of (tsc - truth) in nanoseconds. Exit status 1 when they
are off by more than MEDIAN in the median, or P99 at the 99th percentile; when a time goes backwards or lies
outside its bounds; when the truth does, or an exact time is off by more than RESOLUTION TSC ticks, for more
than UNSURE percent of the branches; or when they differ. PT_TIME_SHOW=N prints the N worst.
"""
import itertools
import os
import sys


def truth(path):
    kernel = True
    for line in open(path):
        w = line.split()
        if w[0] == "TRACEON":
            kernel = int(w[2], 16) & 4
        if w[0].isdigit() and len(w) > 9 and w[5] != "jcc-n" and w[9] != "--":
            before, after = w[9][0] == "P", w[9][1] == "P"
            if before and after and w[5] in ("vmexit", "vmentry"):
                yield int(w[0]), w[6], "0"
                yield int(w[0]), "0", w[8]
            else:
                yield int(w[0]), w[6] if before else "0", w[8] if after else "0"
        elif w[0] == "TRACEON" and kernel:
            yield int(w[6]), "0", w[12]
        elif w[0] == "TRACEOFF" and kernel:
            yield int(w[1]), w[5], "0"


def got(path):
    for line in open(path):
        if not line.startswith("#"):
            yield line.split()


def number(word):
    return None if word == "-" else int(word)


def main():
    mhz = float(sys.argv[3])
    median, p99, resolution = float(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6])
    show = int(os.environ.get("PT_TIME_SHOW", 0))
    errors, worst, last = [], [], 0
    backwards = outside = untrue = inexact = exact = open_ended = 0
    for n, (t, g) in enumerate(itertools.zip_longest(truth(sys.argv[1]), got(sys.argv[2]))):
        if not t or not g or t[1:] != (g[4], g[5]):
            print(f"branch {n}: {t} in the truth, {g} here")
            sys.exit(1)
        tsc, low, high = number(g[0]), number(g[1]), number(g[2])
        backwards += tsc < last
        last = tsc
        outside += tsc < low or (high is not None and tsc > high)
        if g[3] == "exact":
            exact += 1
            inexact += abs(tsc - t[0]) > resolution
        else:
            untrue += t[0] < low or (high is not None and t[0] > high)
            open_ended += high is None
        errors.append((tsc - t[0]) * 1000.0 / mhz)
        if show:
            worst.append((abs(tsc - t[0]), n, t, g))
    errors.sort()
    at = lambda p: errors[min(len(errors) - 1, int(len(errors) * p / 100))]
    size = sorted(abs(e) for e in errors)
    abs_at = lambda p: size[min(len(size) - 1, int(len(size) * p / 100))]
    print(
        f"branches {len(errors)} ns p1 {at(1):.0f} median {at(50):.0f} p99 {at(99):.0f} max {errors[-1]:.0f}"
        f" |median| {abs_at(50):.0f} |p99| {abs_at(99):.0f} backwards {backwards} outside {outside};"
        f" exact {exact} of them off {inexact}; truth not in its interval {untrue}, no end known {open_ended}"
    )
    for w in sorted(worst, reverse=True)[:show]:
        print(*w)
    bad = backwards or outside or (untrue + inexact) * 100 > len(errors) * float(sys.argv[7])
    sys.exit(bool(bad) or abs_at(50) > median or abs_at(99) > p99)


main()
