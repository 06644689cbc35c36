#!/usr/bin/env python3
"""insn_apx.py OBJDUMP INSN_SLOTS FOLDER - decode/insn.c against objdump 2.44 or later, which knows APX: instructions with
REX2, with EVEX map 4, and with EVEX in the other maps and the bits that are APX's, of every opcode, prefix, /r, memory
and register form. Where both find an instruction, lengths and classes are equal. An opcode in one of these forms is one
for both, whatever fields it has beside these (W, L, vvvv, NF, ND, B4, X4), or for neither.
"""
import itertools
import re
import subprocess
import sys

OBJDUMP, SLOTS, FOLDER = sys.argv[1:]
PP = [0, 0x66, 0xf3, 0xf2]


def objdump(path):
    """By slot: length and mnemonic; None: no instruction."""
    out = subprocess.run([OBJDUMP, "-D", "-w", "-z", "--insn-width=16", "-b", "binary", "-m", "i386:x86-64", "-M", "intel64",
                          path], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in out.splitlines():
        m = re.match(r"\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t?(.*)", line)
        if m and int(m[1], 16) % 32 == 0:
            words = [w for w in re.sub(r"\{.*?\}", "", m[3]).split()
                     if not re.match(r"rex|rep|lock|data16|addr32|bnd|notrack|[c-gs]s$", w)]
            bad = "(bad)" in m[3] or not words
            found[int(m[1], 16) // 32] = None if bad else (len(m[2].split()), words[0])
    return found


def class_of(mnemonic):
    """As far as it is one: a REX2 does not change it."""
    for name, pattern in (("jmp indirect", "jmpabs"), ("call indirect", "call"), ("jmp indirect", "jmp$"),
                          ("syscall", "syscall|sysenter"), ("sysret", "sysret|sysexit"), ("ret far", "lret"), ("ret", "ret"),
                          ("iret", "iret"), ("int", "int"), ("call far", "lcall"), ("jmp far", "ljmp"),
                          ("ptwrite", "ptwrite"), ("vmptrld", "vmptrld"), ("xbegin", "xbegin"), ("hlt", "hlt"), ("rsm", "rsm"),
                          ("mwait", "tpause|umwait|mwait")):
        if re.match(pattern, mnemonic):
            return name
    return None


def operands(reg, memory, sib=False):
    return bytes([(reg << 3) | (0xc1 if not memory else 0x04 if sib else 0x01)]) + b"\x11" * 16


def rex2(payloads):
    for opcode, payload, pp, reg, memory in itertools.product(range(256), payloads, PP, range(8), (True, False)):
        yield (("rex2", payload >> 7, opcode, pp, reg, memory),
               (bytes([pp]) if pp else b"") + bytes([0xd5, payload, opcode]) + operands(reg, memory))


def evex(number, p0s, vs, p2s, opcodes=range(256)):
    for opcode, pp, reg, memory in itertools.product(opcodes, range(4), range(8), (True, False)):
        for p0, w, v, p2 in itertools.product(p0s, (0, 0x80), vs, p2s):
            yield (("evex", number, opcode, pp, reg, memory),
                   bytes([0x62, p0 | number, w | v | pp, p2, opcode]) + operands(reg, memory, opcode == 0x4b))


def read_both(slots):
    """By slot: objdump's length and mnemonic, or None; our length, 0 for none, and class."""
    path = FOLDER + "/slots"
    with open(path, "wb") as f:
        f.write(b"".join((s + b"\x90" * 32)[:32] for s in slots))
    theirs = objdump(path)
    ours = [line.split(None, 1) for line in subprocess.run([SLOTS, path], capture_output=True, text=True,
                                                           check=True).stdout.splitlines()]
    return [(theirs.get(i), int(o[0]), o[1]) for i, o in enumerate(ours)]


# Where objdump's reading is not the specification's: REX2 before the rows that it cannot precede (40 to 4F: INC and DEC of
# the older modes; 0F 30 to 3F: GETSEC), before VEX; WAIT, which objdump joins to what comes; LDTILECFG's /r.
ODD = ({("rex2", 0, n) for n in range(0x40, 0x50)} |
       {("rex2", 0, 0xc5), ("rex2", 0, 0x9b), ("rex2", 1, 0x37), ("evex", 2, 0x49)})


def compare(name, cases, plain):
    """plain: the same instruction without APX, in bytes; where the two differ in that as well, that is no matter of APX."""
    keys, slots = zip(*cases)
    both, differ = 0, []
    ours, theirs = {}, {}
    for key, slot, (t, length, cls) in zip(keys, slots, read_both(slots)):
        if t:
            theirs.setdefault(key, slot)
        if length:
            ours.setdefault(key, slot)
        if not t or not length:
            continue
        both += 1
        if t[0] != length:
            differ.append("%s: %d bytes, objdump's %s has %d" % (slot[:12].hex(" "), length, t[1], t[0]))
        elif class_of(t[1]) not in (None, cls):
            differ.append("%s: %s, objdump: %s" % (slot[:12].hex(" "), cls, t[1]))
    odd = sorted(k for k in set(ours) ^ set(theirs) if k[:3] not in ODD)
    if plain:
        odd = [k for k, (t, length, _) in zip(odd, read_both([plain(k) for k in odd])) if bool(t) == bool(length)]
    print("%s: %d instructions, of %d forms, in both" % (name, both, len(set(ours) & set(theirs))))
    failed = 0
    for what, lines in (("lengths and classes", differ),
                        ("what objdump finds", ["%s: %s" % (k, theirs[k][:12].hex(" ")) for k in odd if k in theirs]),
                        ("what we find", ["%s: %s" % (k, ours[k][:12].hex(" ")) for k in odd if k in ours])):
        print("%s %s: %s" % ("FAIL" if lines else "ok", name, what))
        failed += bool(lines)
        for line in lines[:20]:
            print("    " + line)
    return 3 - failed, failed


def without_rex2(key):
    _, number, opcode, pp, reg, memory = key
    return (bytes([pp]) if pp else b"") + (b"\x0f" if number else b"") + bytes([opcode]) + operands(reg, memory)


RUNS = [
    ("REX2", lambda: rex2((0x00, 0x08, 0x77, 0x80, 0x88, 0xf7)), without_rex2),
    ("EVEX map 4", lambda: evex(4, (0xf0, 0x88), (0x7c, 0x00), (0x08, 0x0c, 0x18, 0x0a)), None),
    ("EVEX of VEX", lambda: itertools.chain(
        evex(1, (0xf0, 0x98), (0x7c, 0x78), (0x08, 0x0c), range(0x90, 0x94)),
        evex(2, (0xf0, 0x98), (0x7c, 0x78), (0x08, 0x0c), [0x49, 0x4b, *range(0xe0, 0xf0), 0xf2, 0xf3, 0xf5, 0xf6, 0xf7]),
        evex(3, (0xf0, 0x98), (0x7c, 0x78), (0x08, 0x0c), [0xf0])), None),
]


def main():
    passed = failed = 0
    for name, cases, plain in RUNS:
        p, f = compare(name, cases(), plain)
        passed += p
        failed += f
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


sys.exit(main())
