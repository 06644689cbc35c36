#!/usr/bin/env python3
"""insns_objdump.py intel|att FILE - the mnemonics of pt-decode --insns -F bytes,insn (each line once) against objdump's.

objdump disassembles the bytes of all lines, one after the other, so a wrong length would show, too. Names that two
assemblers have for one encoding are made one. Prints what differs, and the counts that tests/common.bash wants.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

syntax, path = sys.argv[1:]
ours = {}
for line in open(path):
    hexes, text = line.rstrip("\n").split("\t")
    ours[bytes.fromhex(hexes)] = text
insns = sorted(ours)
with tempfile.NamedTemporaryFile(delete=False) as blob:
    # NOPs end an instruction that objdump takes for a longer one.
    blob.write(b"".join(insn + b"\x90" * 16 for insn in insns))
out = subprocess.run(["objdump", "-D", "-z", "-w", "-b", "binary", "-m", "i386:x86-64", "-M", syntax, "--insn-width=16",
                      blob.name], capture_output=True, text=True, check=True).stdout
os.unlink(blob.name)
theirs = {}
for line in out.splitlines():
    m = re.match(r" *([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t?(.*)", line)
    if m:
        theirs[int(m[1], 16)] = (len(m[2].split()), m[3])

PREFIXES = {"rep", "repz", "repe", "repnz", "repne", "lock", "data16", "addr32", "cs", "ds", "es", "ss", "fs", "gs", "bnd",
            "notrack", "xacquire", "xrelease", "rex.W"}
# One encoding, two names.
SAME = {"movabs": "mov", "wait": "fwait", "xchg": "nop", "xchgl": "nop", "xchgb": "nop", "xchgq": "nop", "xchgw": "nop", "pause": "nop", "movd": "movq", "sal": "shl", "cwtl": "cwde", "cltq": "cdqe",
        "cwtd": "cwd", "cltd": "cdq", "cqto": "cqo", "ud2a": "ud2", "iretq": "iret", "leave": "leaveq"}


def mnemonic(text):
    words = text.split()
    while len(words) > 1 and (words[0] in PREFIXES or words[0].startswith("rex")):
        words.pop(0)
    name = words[0] if words else ""
    name = re.sub("^(movs|stos|lods|scas|cmps|ins|outs)[bwdlq]$", r"\1", name)
    return SAME.get(name, name)


def same(a, b, text):
    if a == b:
        return True
    # AT&T: objdump leaves the size to the register; capstone writes it.
    if syntax == "att" and (a.rstrip("bwlqst") == b.rstrip("bwlqst") or a.startswith(b) or b.startswith(a)):
        return True
    # Comparisons with their predicate in the name, or as an operand.
    if re.match("v?cmp", a) and re.match("v?cmp", b):
        return True
    return False


differs = collections.Counter()
unknown = lengths = at = 0
for insn in insns:
    length, text = theirs[at]
    at += len(insn) + 16
    lengths += length != len(insn)
    if ours[insn].startswith(".byte"):
        unknown += 1
        differs["unknown: " + mnemonic(text)] += 0
        if ours[insn] != ".byte " + ", ".join("0x%02x" % b for b in insn):
            differs["bytes of " + insn.hex()] += 1
    elif not same(mnemonic(ours[insn]), mnemonic(text), text):
        differs[mnemonic(ours[insn]) + " is objdump's " + mnemonic(text)] += 1
print("%d distinct encodings; capstone does not know %d: %s" % (
    len(insns), unknown, " ".join(sorted(k[9:] for k in differs if k.startswith("unknown: ")))))
wrong = {k: n for k, n in differs.items() if n}
for k, n in sorted(wrong.items(), key=lambda x: -x[1])[:40]:
    print("FAILED: %s (%d)" % (k, n))
if lengths:
    print("FAILED: %d lengths are not objdump's" % lengths)
checks = [bool(wrong), bool(lengths), len(insns) < 1000, unknown * 100 > len(insns)]
print("%d passed, %d failed" % (checks.count(False), checks.count(True)))
sys.exit(any(checks))
