#!/usr/bin/env python3
"""kernel_code.py memory CONTAINER CONTAINER: bytes of the first one's kernel that the second has, alike and
different: "SAME OTHER" kernel_code.py modules CONTAINER KCORE ROOT: each branch of CONTAINER's modules that
their relocations (of the files beneath ROOT) complete, held against KCORE's: "SAME HOLES OTHER [what
differs]". Not counted is what the kernel has patched since: another opcode; static calls; returns; what
belongs to alternatives."""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../oracle"))
import ptc_reader  # noqa: E402

PATCHED = re.compile(r"__SCT__|__x86_|\.altinstr|\.init\.text|copy_user_|clear_user_|clear_page_|copy_mc_")


def memory(path):
    """The images of the host's kernel: (address, code, name)"""
    images = []
    for kind, _, _, _, data in ptc_reader.chunks(open(path, "rb").read()):
        if kind != 6:
            continue
        p = ptc_reader.Payload(data)
        image, machine, _, _ = p.numbers("IiiI")
        _, vaddr, _ = p.numbers("QQQ")
        p.string()
        name = p.string().decode()
        if image == 2 and machine == 0:
            images.append((vaddr, p.bytes(*p.numbers("Q")), name))
    return images


def get(images, at, n):
    return next((code[at - v:at - v + n] for v, code, _ in images if v <= at and at + n <= v + len(code)), None)


def compare_memory(first, second):
    second, same, other = memory(second), 0, 0
    for vaddr, code, _ in memory(first):
        for at in range(0, len(code), 4096):
            page = code[at:at + 4096]
            there = get(second, vaddr + at, len(page))
            if there is not None:
                differ = 0 if there == page else sum(x != y for x, y in zip(there, page))
                same, other = same + len(page) - differ, other + differ
    print(same, other)


def readelf(option, path):
    return subprocess.run(["readelf", option, path], capture_output=True, text=True).stdout.split("\n")


def sections(path, at):
    """Where the kernel has put a module's sections of code."""
    place = {}
    for line in readelf("-SW", path):
        m = re.match(r"\s*\[\s*\d+\] (\S+)\s+\S+\s+\S+ \S+ (\S+) \S+\s+(\S+)\s+\d+\s+\d+\s+(\d+)", line)
        if m and "A" in m[3] and "X" in m[3] and not m[1].startswith(".init"):
            at = -(-at // int(m[4])) * int(m[4])
            place[m[1]] = at
            at += int(m[2], 16)
    return place


def compare_modules(ours, kcore, root):
    ours, kcore = memory(ours), memory(kcore)
    same = holes = 0
    other = {}
    for name in sorted({n for _, _, n in ours if ".ko" in n}):
        place, now = sections(root + name, min(v for v, _, n in ours if n == name)), None
        for line in readelf("-rW", root + name):
            m = re.match(r"Relocation section '\.rela(\S+)'", line)
            if m:
                now = place.get(m[1])
            f = line.split()
            if now is None or len(f) < 5 or f[2] not in ("R_X86_64_PC32", "R_X86_64_PLT32"):
                continue
            x, y = (get(images, now + int(f[0], 16) - 1, 5) for images in (ours, kcore))
            if x is None or y is None:
                holes += f[4] != ".init.text"  # what calls that is gone with it
            elif x[0] in (0xe8, 0xe9) and x == y:
                same += 1
            elif x[0] in (0xe8, 0xe9) and x[0] == y[0] and not PATCHED.match(f[4]):
                other[f[4]] = other.get(f[4], 0) + 1
    print(same, holes, len(other), sorted(other.items()))


if sys.argv[1] == "memory":
    compare_memory(*sys.argv[2:])
else:
    compare_modules(*sys.argv[2:])
