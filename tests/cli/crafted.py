#!/usr/bin/env python3
"""crafted.py FOLDER [N] - writes small files there that were made to take long, or much memory; N: an Nth of
what is in them."""
import os
import struct
import sys

PSB = b"\x02\x82" * 8
USER = {"attr": 64, "tracing": 66, "build_id": 67, "info": 70}
TID, TIME, CPU, RAW, AUX = 2, 4, 0x80, 0x400, 0x100000
PART = int(sys.argv[2]) if len(sys.argv) > 2 else 1


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def perf_data(name, sample_type, records, kind=8, config=0x300e601):
    """A recording of Intel PT in pipe mode, of one event."""
    attr = bytearray(112)
    struct.pack_into("<IIQQQ", attr, 0, kind, 112, config, 1, sample_type)
    info = struct.pack("<II", 1, 0) + struct.pack("<16Q", 8, 0, 1, 0, 1, 0x400, 0x800, 2, 0, 1, 0x200, 0x3c000, 160,
                                                  2, 2, 20) + bytes(8)
    with open(name, "wb") as f:
        f.write(b"PERFILE2" + struct.pack("<Q", 16))
        f.write(record(USER["attr"], 0, bytes(attr) + struct.pack("<Q", 5)))
        f.write(record(USER["info"], 0, info))
        f.write(b"".join(records))


def sample(time, body):
    return record(9, 2, struct.pack("<IIQII", 7, 7, time, 0, 0) + body)


def samples(name):
    """AUX samples of nothing but PSBs without a time, each the same as the one before, nearly."""
    aux = PSB * 4000
    perf_data(name, TID | TIME | CPU | AUX,
              [sample(i + 1, struct.pack("<Q", len(aux)) + aux[2 * i:] + aux[:2 * i]) for i in range(4)])


def cpus(name):
    """Small AUX samples, each of a CPU of its own."""
    perf_data(name, TID | TIME | CPU | AUX,
              [record(9, 2, struct.pack("<IIQII", 7, 7, i + 1, i, 0) + struct.pack("<Q", 8) + bytes(8))
               for i in range(60000 // PART)])


def files(name):
    """As many files mapped as build ids are listed, of none of which there is code."""
    ids = [record(USER["build_id"], 2, struct.pack("<i", -1) + bytes(20) + b"\x14\0\0\0" + b"/n/%06d\0" % i)
           for i in range(60000 // PART)]
    maps = [record(10, 2, struct.pack("<iiQQQIIQQII", 7, 7, i << 12, 4096, 0, 0, 0, 0, 0, 5, 2) + b"/m/%09d\0\0\0\0" % i)
            for i in range(60000 // PART)]
    perf_data(name, TID | TIME | CPU, ids + maps)


def tasks(name):
    """Threads, each of a process of its own, which are forked one by another."""
    perf_data(name, TID | TIME | CPU,
              [record(3, 0, struct.pack("<ii", i + 9, i + 9) + b"n\0\0\0\0\0\0\0") +
               record(7, 0, struct.pack("<iiiiQ", i + 10, i + 9, i + 10, i + 9, 0)) for i in range(100000 // PART)])


def fields(name):
    """A tracepoint whose fields are all the same bytes: each of its samples makes a text of a hundred megabytes."""
    text = b"name: y\nID: 8\nformat:\n" + b"".join(
        b"\tfield:u8 f%d[60000];\toffset:0;\tsize:60000;\tsigned:0;\n" % i for i in range(500)) + b"\nprint fmt: \"\"\n"
    data = b"\x17\x08\x44tracing0.6\0\0\x08" + struct.pack("<I", 4096) + b"header_page\0" + bytes(8) + b"header_event\0"
    data += bytes(8) + struct.pack("<II", 0, 1) + b"x\0" + struct.pack("<IQ", 1, len(text)) + text + bytes(16)
    data += bytes(-len(data) % 8)
    raw = bytes(60004)
    perf_data(name, TID | TIME | CPU | RAW,
              [record(USER["tracing"], 0, struct.pack("<I", len(data))) + data] +
              [sample(i + 1, struct.pack("<I", len(raw)) + raw) for i in range(20)], kind=2, config=8)


def elf(name):
    """20,000 functions of one name, of 60,000 bytes."""
    strings = b"\0" + b"n" * 60000 + b"\0"
    symbols = bytes(24) + b"".join(struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0x1000 + i, 1) for i in range(20000))
    code = b"\xc3" * 16
    at = 64 + 56
    sections = [(0, 0, 0, 0, 0, 0, 0, 0, 0, 0), (0, 1, 6, 0x1000, 4096, 16, 0, 0, 16, 0),
                (0, 2, 0, 0, 8192, len(symbols), 3, 0, 8, 24), (0, 3, 0, 0, 8192 + len(symbols), len(strings), 0, 0, 1, 0)]
    table = 8192 + len(symbols) + len(strings)
    out = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, 0x1000, 64, table, 0, 64, 56, 1, 64, 4, 3)
    out += struct.pack("<IIQQQQQQ", 1, 5, 4096, 0x1000, 0x1000, 16, 16, 4096)
    out += bytes(4096 - at) + code + bytes(4096 - 16) + symbols + strings
    out += b"".join(struct.pack("<IIQQQQIIQQ", *s) for s in sections)
    with open(name, "wb") as f:
        f.write(out)


def main():
    os.chdir(sys.argv[1])
    samples("samples")
    cpus("cpus")
    files("files")
    tasks("tasks")
    fields("fields")
    elf("elf")
    with open("psbs", "wb") as f:
        f.write(PSB * (500000 // PART))
    with open("aux", "wb") as f:
        f.write(PSB + b"\x19\x07\0\0\0\0\0\0\x02\x23")
    with open("kallsyms", "w", encoding="ascii") as f:
        for i in range(300000 // PART):
            f.write("%016x t f\t[m%d]\n" % (0xffffffff81000000 + i, i))
    with open("line", "wb") as f:
        f.write(b"ffffffff81000000 T f\n" + b"x" * 300000000)
    with open("side", "wb") as f:
        f.write(record(4, 0, b"") * 15000000)


main()
