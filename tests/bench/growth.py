#!/usr/bin/env python3
"""tests/bench/growth.py [--mb N] [--most-mb N] [SERIES...] - `make bench-growth`: how time and memory of
`pt-decode | pt-load` grow with AUX data (mb), streams, threads, distinct basic blocks, call paths and programs (each begun at an address of its own), one at a time;
as a table for docs/performance.md. Inputs are tests/tools/mkscale's: --mb (64) of AUX data but for the series mb, which
goes up to --most-mb (4096, some 2 GB of disk). CPU seconds of one run: what counts is ns a branch, and the MB. pt-decode has one
thread: with more, each has up to 80 MB of its own.
"""
import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.append("tests/bench")
from yardstick import BUILD, Failed, Run, pt  # noqa: E402

OTHERS = {"mb": ["--threads", "10"], "streams": ["--threads", "256"], "threads": [], "blocks": ["--threads", "10"],
          "call-paths": ["--threads", "10"], "programs": []}
STEPS = {"mb": [1, 4, 16, 64, 256, 1024, 4096], "streams": [1, 4, 16, 64, 256], "threads": [10, 100, 1000, 10000, 100000],
         "blocks": [1000, 10000, 100000, 1000000], "call-paths": [1000, 10000, 100000, 1000000],
         "programs": [10, 100, 1000, 10000]}
COLUMNS = ("with", "AUX MB", "branches, M", "pt-decode s", "ns a branch", "MB", "pt-load s", "ns a branch", "MB", "database MB")


def measure(series, n, mb, folder):
    container, database = os.path.join(folder, "c.ptc"), os.path.join(folder, "db")
    size = ["--bytes", str((n if series == "mb" else mb) << 20)]
    what = [] if series == "mb" else [f"--{series}", str(n)]
    Run([os.path.join(BUILD, "tests/tools/mkscale"), *size, *OTHERS[series], *what], output=container)
    run = Run([pt("pt-decode"), "-j", "1", "-q", container], [pt("pt-load"), "-q", database])
    db = sqlite3.connect(database)
    branches, errors = db.execute("SELECT branches, (SELECT count(*) FROM errors) FROM traces").fetchone()
    db.close()
    if errors:
        raise Failed(f"{n} {series}: {errors} errors")
    cells = [f"{n:,} {series}", f"{n if series == 'mb' else mb}", f"{branches / 1e6:.1f}"]
    for cpu_s, most in zip(run.cpu_s, run.mb):
        cells += [f"{cpu_s:.2f}", f"{cpu_s / branches * 1e9:.2f}", f"{most:.0f}"]
    print("| " + " | ".join(cells + [f"{os.path.getsize(database) / 1e6:.1f}"]) + " |", flush=True)
    os.unlink(database)
    os.unlink(container)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=64)
    parser.add_argument("--most-mb", type=int, default=4096)
    parser.add_argument("series", nargs="*", default=list(STEPS))
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="pt-growth.")
    failed = 0
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS), flush=True)
    try:
        for series in options.series:
            for n in STEPS[series]:
                if series == "mb" and n > options.most_mb:
                    continue
                try:
                    measure(series, n, options.mb, folder)
                except (Failed, sqlite3.Error, subprocess.SubprocessError) as e:
                    print(f"failed: {e}", file=sys.stderr, flush=True)
                    failed = 1
    finally:
        shutil.rmtree(folder)
    return failed


sys.exit(main())
