#!/usr/bin/env python3
"""tests/bench/yardstick.py [-q] [--instructions] [--save] [INPUT...] - `make bench`: the pipeline against libipt's block
decoder and perf, interleaved in one run. Prints medians of RUNS (5) and their spread; ratios are the other's CPU time by
ours, cold, start-up included: read them and not the seconds.

  inputs: gzip, lua, cc1, sqlite (-dflt, -cyc) of ../shared/bench; user-ls, host-all, linux-guest, qemu-guest of
          ../shared/traces/emulated; big, when BENCH_BIG=GB is set: sqlite-dflt again and again on eight CPUs.
          An INPUT given picks those that begin so.
  null    pt-decode -j 1 --null;   pipe   its records into a pipe;   load   pt-load -j 1 of these, from a file
  cores   how many times as fast, by the wall clock, the pipe is with all cores (-j) as with one
  whole   pt-decode CONTAINER | pt-load DB, all cores: wall clock, CPU of both, most memory of each
  libipt  of the same AUX data; for inputs that it cannot follow (kernels, guests) of gzip-dflt: so that their ratios,
          too, say the same on a faster machine, but only how one run compares with another
  perf    `perf script --itrace=e`, which decodes and prints nothing, and --itrace=b, text, of the first TEXT_BYTES

The result goes to build/bench.json, beside what tests/bench/last.json has: ratios that are worse are listed.
--save makes it that. -q: one run of each. --instructions: counts them, by folder of the sources, in place of taking times
(valgrind: a minute for each input, of which the first COUNT_BYTES are taken); they hardly vary, however busy the machine is.
"""
import argparse
import collections
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BIN = os.environ.get("PT_BIN", ".")
BUILD = os.environ.get("PT_BUILD", "build")
SHARED = os.environ.get("PT_SHARED", "../shared")
LAST = "tests/bench/last.json"
TEXT_BYTES = 200000
COUNT_BYTES = 1000000
WORSE = 0.1  # by how much a ratio may be less before it is listed, if the spreads are not larger
RAW = ["--mtc-freq", "3", "--tsc-ratio", "160/2", "--nom-freq", "20"]
CLOCK = ["--time-shift", "31", "--time-mult", "1073741824", "--time-zero", "1000000"]
EMULATED = {  # name: archive, recording, further options of import; perf can decode it alone
    "user-ls": ("user-ls-cyc", "user.data", [], True),
    "host-all": ("host-all-cyc-2cpu", "all.data", [], True),
    "linux-guest": ("linux-guest-cyc-1cpu", "vm.data", ["--guest", "guest.data,101,0xfffffd0b3e60cd07"], False),
    "qemu-guest": ("qemu-guest", "pt.data", ["--guest", "g1/guest.data,87,-1569630896"], False)}
# Source folders to what they do, for --instructions: the first that fits.
PARTS = [("decode/packet", "packet"), ("decode/flow", "flow"), ("decode/code", "code"), ("decode/insn", "code"),
         ("decode/output", "output"), ("decode/session", "session"), ("decode/sideband", "session"), ("decode/vm", "vm"),
         ("schema/records_read", "read"), ("schema/records", "write"), ("schema/container", "read"), ("schema/", "schema"),
         ("export/", "load")]


class Failed(Exception):
    pass


def pt(program):
    return os.path.join(BIN, program)


class Run:
    """Commands joined by pipes; the last one's output to a file or nowhere. CPU seconds and most MB of each."""

    def __init__(self, *commands, output=os.devnull):
        begin, processes, feed = time.monotonic(), [], subprocess.DEVNULL
        with open(output, "wb") as out, tempfile.TemporaryFile() as err:
            for command in commands:
                last = command is commands[-1]
                # pylint: disable=consider-using-with
                p = subprocess.Popen(command, stdin=feed, stdout=out if last else subprocess.PIPE, stderr=err)
                if feed is not subprocess.DEVNULL:
                    feed.close()
                feed = p.stdout
                processes.append(p)
            self.cpu_s, self.mb = [], []
            for p in processes:
                _, status, usage = os.wait4(p.pid, 0)
                p.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s.append(usage.ru_utime + usage.ru_stime)
                self.mb.append(usage.ru_maxrss / 1024)
                if p.returncode not in (0, 3):
                    err.seek(0)
                    raise Failed(f"{' '.join(p.args)}: status {p.returncode}: {err.read()[-300:].decode()}")
        self.wall_s = time.monotonic() - begin


def say(command, **options):
    """What a command prints, as text."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **options)
    if done.returncode not in (0, 3):
        raise Failed(f"{' '.join(command)}: {done.stderr[-300:].decode(errors='replace')}")
    return done.stdout.decode()


# ---- Inputs -------------------------------------------------------------------------------------------

class Input:
    """A container, what libipt takes, and what perf takes (None: nothing)."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.container = os.path.join(folder, "c.ptc")
        self.libipt = self.perf = None
        self.perf_text = None  # a smaller one
        self.insns = None      # the truth

    def import_(self, *options, output=None):
        Run([pt("pt-capture"), "import", "-o", output or self.container, *options])


def unpacked(name, folder):
    """An AUX file and the code of a recording of ../shared/bench."""
    program, variant = name.split("-")
    bench = os.path.join(SHARED, "bench")
    for source, to in ((f"{program}.{variant}.aux", f"{name}.aux"), (f"{program}.img", f"{program}.img")):
        if not os.path.exists(os.path.join(folder, to)):
            say(["zstd", "-dqf", os.path.join(bench, source + ".zst"), "-o", os.path.join(folder, to)])
    maps = os.path.join(folder, program + ".maps")
    if not os.path.exists(maps):
        shutil.copy(os.path.join(bench, program + ".maps"), maps)
    return os.path.join(folder, name + ".aux"), maps


def first_bytes(path, size):
    """A file with as many of another."""
    part = f"{path}.{size}"
    with open(path, "rb") as whole, open(part, "wb") as to:
        to.write(whole.read(size))
    return part


def bench_input(name, folder, count):
    program, variant = name.split("-")
    it = Input(name, folder)
    aux, maps = unpacked(name, folder)
    if count:
        aux = first_bytes(aux, COUNT_BYTES)
    it.import_("--raw", aux, "--maps", maps, *RAW)
    it.libipt = [os.path.join(BUILD, "tests/bench/libipt_block"), aux, maps]
    with open(os.path.join(SHARED, "bench", program + ".truth"), encoding="ascii") as f:
        it.insns = None if count else int(re.search(rf"^{variant} .*?insn=(\d+)", f.read(), re.M)[1])
    if not count and shutil.which("perf"):
        elf = os.path.join(folder, program)
        say([sys.executable, "tests/oracle/maps2elf.py", maps, elf])
        exported = []
        for what in (aux, first_bytes(aux, TEXT_BYTES)):
            it.import_("--raw", what, "--elf", elf, *CLOCK, *RAW, output=os.path.join(folder, "p.ptc"))
            exported.append(what + ".perf")
            Run([pt("pt-capture"), "export", "-q", "--perf-data", exported[-1], os.path.join(folder, "p.ptc")])
        it.perf, it.perf_text = ["perf", "script", "-i", exported[0]], ["perf", "script", "-i", exported[1]]
    return it


def emulated_input(name, folder, count):
    archive, recording, options, for_perf = EMULATED[name]
    it = Input(name, folder)
    say(["tar", "-C", folder, "--zstd", "-xf", os.path.join(SHARED, "traces/emulated", archive + ".tar.zst")])
    top = os.path.join(folder, archive)
    options = [os.path.join(top, o) if o.endswith(tuple("0123456789abcdef")) and "," in o else o for o in options]
    it.import_("--symfs", os.path.join(top, "symfs"), *options, os.path.join(top, recording))
    if for_perf and not count and shutil.which("perf"):
        it.perf = ["perf", "script", "-i", os.path.join(top, recording), "--symfs", os.path.join(top, "symfs")]
    return it


def big_input(name, folder, _):
    gigabytes = float(os.environ["BENCH_BIG"])
    if shutil.disk_usage(folder).free < gigabytes * 3e9:
        raise Failed(f"{gigabytes * 3:.0f} GB of disk are wanted")
    it = Input(name, folder)
    aux, maps = unpacked("sqlite-dflt", folder)
    it.import_("--raw", aux, "--maps", maps, *RAW, output=os.path.join(folder, "one.ptc"))
    Run([os.path.join(BUILD, "tests/tools/mkscale"), "--bytes", str(int(gigabytes * 2**30)), "--streams", "8", "--clone",
         os.path.join(folder, "one.ptc")], output=it.container)
    return it


def inputs(wanted):
    """(name, function that makes it)"""
    every = []
    if os.path.isdir(os.path.join(SHARED, "bench")):
        every += [(f"{w}-{v}", bench_input) for w in ("gzip", "lua", "cc1", "sqlite") for v in ("dflt", "cyc")]
        if os.environ.get("BENCH_BIG"):
            every.append(("big", big_input))
    if os.path.isdir(os.path.join(SHARED, "traces/emulated")):
        every += [(name, emulated_input) for name in EMULATED]
    return [i for i in every if not wanted or i[0].startswith(tuple(wanted))]


# ---- Times --------------------------------------------------------------------------------------------

def sums(it):
    """What was decoded: counts of --stats."""
    text = say([pt("pt-decode"), "-q", "--null", "--stats", it.container])
    counts = {key: int(value) for key, value in re.findall(r"^stats\.(\w+) (\d+)$", text, re.M)}
    if it.insns not in (None, counts["insn"]):
        raise Failed(f"pt-decode: {it.name}: {counts['insn']} instructions, not {it.insns}")
    near = sum(counts[k] for k in ("jcc_taken", "jcc_not", "jmp", "call", "ijmp", "icall", "ret"))
    return {"near_branches": near, "taken_branches": counts["branches"], "aux_bytes": counts["aux_bytes"],
            "errors": counts["errors"]}


def times(it, reference, rounds):
    """The input's measurements, each once a round: name to list."""
    decode, records, database = [pt("pt-decode"), "-q", it.container], it.container + ".records", it.container + ".db"
    load, one = [pt("pt-load"), "-q", database], ["-j", "1"]
    got = collections.defaultdict(list)
    for _ in range(rounds):
        got["libipt_s"] += Run(reference).cpu_s
        got["null_s"] += Run(decode + one + ["--null"]).cpu_s
        run = Run(decode + one, ["cat"])  # a real pipe, so that writing costs what it costs
        got["pipe_s"].append(run.cpu_s[0])
        got["cores"].append(run.wall_s / Run(decode, ["cat"]).wall_s)
        if it.name != "big":  # of it the whole pipe is enough
            Run(decode, output=records)
            if os.path.exists(database):
                os.unlink(database)
            got["load_s"] += Run(load + one + [records]).cpu_s
            os.unlink(records)
        if os.path.exists(database):
            os.unlink(database)
        run = Run(decode, load)
        got["whole_wall_s"].append(run.wall_s)
        got["whole_cpu_s"].append(sum(run.cpu_s))
        got["decode_mb"].append(run.mb[0])
        got["load_mb"].append(run.mb[1])
        got["database_bytes"].append(os.path.getsize(database))
        if it.perf:
            got["perf_s"] += Run(it.perf + ["--itrace=e"]).cpu_s
        if it.perf_text:
            got["perf_text_s"] += Run(it.perf_text + ["--itrace=b"]).cpu_s
    os.unlink(database)
    return got


def ratios(row):
    """The other's time by ours. Of perf's text, by the branch."""
    s = {key: value["median"] for key, value in row["measured"].items()}
    found = {key: s["libipt_s"] / s[key + "_s"] for key in ("null", "pipe", "load", "whole_wall", "whole_cpu")
             if key + "_s" in s}
    found["cores"] = s["cores"]
    if "perf_s" in s:
        found["pipe_to_perf"] = s["perf_s"] / s["pipe_s"]
    if "perf_text_s" in s:
        found["pipe_to_perf_text"] = s["perf_text_s"] / row["text_branches"] / (s["pipe_s"] / row["taken_branches"])
    return {key: round(value, 2) for key, value in found.items()}


def measure(it, reference, rounds):
    row = sums(it)
    if it.perf_text:
        lines = os.path.join(it.folder, "lines")
        Run(it.perf_text + ["--itrace=b"], ["wc", "-l"], output=lines)
        with open(lines, encoding="ascii") as f:
            row["text_branches"] = int(f.read())
    row["measured"] = {key: {"median": round(statistics.median(values), 4),
                             "spread": round((max(values) - min(values)) / statistics.median(values), 3)}
                       for key, values in times(it, reference, rounds).items()}
    row["ratios"] = ratios(row)
    return row


COLUMNS = [("input", 11), ("libipt s", 11), ("null s", 12), ("×", 5), ("pipe s", 12), ("×", 5), ("cores", 5), ("load s", 11), ("Mbr/s", 6),
           ("whole s", 11), ("CPU s", 11), ("Mbr/s", 6), ("MB", 9), ("bytes/br", 8), ("× perf", 6), ("× text", 6)]


def print_row(name, row):
    m, r = row["measured"], row["ratios"]

    def seconds(key, digits=3):
        return f"{m[key]['median']:.{digits}f} ±{m[key]['spread'] * 50:.0f}%" if key in m else "-"

    def rate(key):
        return f"{row['taken_branches'] / m[key]['median'] / 1e6:.1f}" if key in m else "-"

    cells = [name, seconds("libipt_s", 2), seconds("null_s"), f"{r['null']:.1f}", seconds("pipe_s"), f"{r['pipe']:.1f}",
             f"{r['cores']:.2f}", seconds("load_s", 2), rate("load_s"), seconds("whole_wall_s", 2), seconds("whole_cpu_s", 2),
             rate("whole_wall_s"), f"{m['decode_mb']['median']:.0f}+{m['load_mb']['median']:.0f}",
             f"{m['database_bytes']['median'] / row['taken_branches']:.2f}",
             f"{r['pipe_to_perf']:.1f}" if "pipe_to_perf" in r else "-",
             f"{r['pipe_to_perf_text']:.0f}" if "pipe_to_perf_text" in r else "-"]
    print(" ".join(f"{c:>{w}}" for c, (_, w) in zip(cells, COLUMNS)), flush=True)


# ---- Instructions -------------------------------------------------------------------------------------

def part_of(path):
    for folder, part in PARTS:
        if f"/{folder}" in path or path.startswith(folder):
            return part
    return "libraries"


def by_part(path):
    """Instructions of a callgrind file: part to number. Inlined code counts where its source is."""
    names, counts = {}, collections.Counter()
    where = base = None
    skip = False
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            found = re.match(r"(f[lie])=\((\d+)\)(?: (.*))?", line)
            if found:
                if found[3]:
                    names[found[2]] = part_of(found[3])
                where = names[found[2]]
                base = where if found[1] == "fl" else base
            elif line.startswith("fn="):
                where = base
            elif line.startswith("calls="):
                skip = True  # the next line is what the callee cost
            elif line[0] in "+-*0123456789":
                if not skip:
                    counts[where] += int(line.split()[1])
                skip = False
            elif line.startswith(("cfi=", "cfl=")):
                found = re.match(r"cf[il]=\((\d+)\)(?: (.*))?", line)
                if found and found[2]:
                    names[found[1]] = part_of(found[2])
    return counts


def instructions(command, folder):
    out = os.path.join(folder, "callgrind")
    Run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command])
    return by_part(out)


def count(it):
    """Million instructions, by program and part."""
    decode, records, database = [pt("pt-decode"), "-q", it.container], it.container + ".records", it.container + ".db"
    one = ["-j", "1"]
    Run(decode, output=records)
    found = {"pt-decode": instructions(decode + one + ["-o", records + "2"], it.folder),
             "pt-load": instructions([pt("pt-load"), "-q", *one, database, records], it.folder)}
    if it.libipt:
        found["libipt"] = collections.Counter({"libraries": sum(instructions(it.libipt, it.folder).values())})
    row = sums(it)
    row["instructions"] = {program: {"all": round(sum(parts.values()) / 1e6),
                                     **{part: round(n / 1e6) for part, n in parts.most_common()}}
                           for program, parts in found.items()}
    row["ratios"] = {}
    if it.libipt:
        row["ratios"]["instructions"] = round(row["instructions"]["libipt"]["all"] /
                                              row["instructions"]["pt-decode"]["all"], 2)
    return row


def print_counts(name, row):
    for program, parts in row["instructions"].items():
        shares = ", ".join(f"{part} {n / parts['all']:.0%}" for part, n in parts.items() if part != "all" and
                           n >= parts["all"] / 100)
        print(f"{name:11} {program:9} {parts['all']:7} M, {parts['all'] * 1e6 / row['taken_branches']:6.1f} a taken branch: "
              f"{shares}", flush=True)
    if "instructions" in row["ratios"]:
        print(f"{name:11} libipt / pt-decode: {row['ratios']['instructions']:.2f}")


# ---- Comparison ---------------------------------------------------------------------------------------

def compare(rows, last):
    """Lists the ratios that are worse, and the instructions that are more, than those of the last result."""
    worse = compared = 0
    for name, row in rows.items():
        old = last.get(name, {})
        for key, value in row["ratios"].items():
            before = old.get("ratios", {}).get(key)
            if not before:
                continue
            compared += 1
            spreads = [r.get("measured", {}).get(f"{key}_s", {}).get("spread", 0) for r in (row, old)]
            if value < before * (1 - max(WORSE, *spreads)):
                worse += 1
                print(f"worse than in {LAST}: {name} {key}: {value}, was {before}")
        for program, parts in row.get("instructions", {}).items():
            before = old.get("instructions", {}).get(program, {}).get("all")
            if before:
                compared += 1
            if before and parts["all"] > before * 1.02:
                worse += 1
                print(f"more than in {LAST}: {name} {program}: {parts['all']} M instructions, were {before}")
    print(f"{compared} figures compared with {LAST}: {worse} worse")


def read_last():
    if not os.path.exists(LAST):
        return {}
    with open(LAST, encoding="utf-8") as f:
        return json.load(f)


def save(rows, path, last):
    """Inputs, and kinds of figures, that were not measured now remain."""
    for name, row in rows.items():
        old = last.get(name, {})
        last[name] = {**old, **row, "ratios": {**old.get("ratios", {}), **row["ratios"]}}
    with open(path, "w", encoding="utf-8") as f:
        f.write("{" + ",".join(f"\n{json.dumps(name)}: {json.dumps(row, sort_keys=True)}" for name, row in sorted(last.items()))
                + "\n}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-q", action="store_true")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("inputs", nargs="*")
    options = parser.parse_args()
    rounds = 1 if options.q else int(os.environ.get("RUNS", "5"))
    chosen = inputs(options.inputs)
    if not chosen:
        print(f"skipped: {SHARED}/bench and traces/emulated are not here, or no such input")
        return 0
    if not options.instructions:
        print(f"Medians of {rounds}, ± half of what they differ by; ×: libipt's CPU time by ours. Mbr/s: million taken "
              "branches a second\n" + " ".join(f"{c:>{w}}" for c, w in COLUMNS))
    rows, failed = {}, 0
    for name, make in chosen:
        folder = tempfile.mkdtemp(prefix="pt-bench.")
        try:
            it = make(name, folder, options.instructions)
            if options.instructions:
                rows[name] = count(it)
                print_counts(name, rows[name])
            else:
                reference = it.libipt or [os.path.join(BUILD, "tests/bench/libipt_block"), *unpacked("gzip-dflt", folder)]
                rows[name] = measure(it, reference, 1 if name == "big" else rounds)
                print_row(name, rows[name])
        except Failed as e:
            failed = 1
            print(f"{name}: failed: {e}", file=sys.stderr, flush=True)
        finally:
            shutil.rmtree(folder)
    last = read_last()
    compare(rows, last)
    save(rows, LAST if options.save else os.path.join(BUILD, "bench.json"), last if options.save else {})
    return failed


if __name__ == "__main__":
    sys.exit(main())
