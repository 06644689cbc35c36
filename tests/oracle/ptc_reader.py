#!/usr/bin/env python3
"""A second reader of containers, written from schema/container.h alone; it shares no code with ours.

ptc_reader.py FILE            prints what is inside as JSON, in the words of `pt-capture info --json`
ptc_reader.py FILE INFO.json  compares: prints what differs, exit status 1 if anything does
ptc_reader.py --aux N FILE    writes the AUX bytes of stream N to standard output
"""
import json
import struct
import subprocess
import sys
import zlib

TYPES = {1: "META", 2: "STREAM", 3: "AUX", 4: "ATTR", 5: "SIDEBAND", 6: "IMAGE", 7: "SYMBOLS", 8: "ROUND",
         9: "INDEX", 10: "END", 11: "FORMAT"}
RECORDS = {1: "MMAP", 2: "LOST", 3: "COMM", 4: "EXIT", 7: "FORK", 10: "MMAP2", 11: "AUX", 12: "ITRACE_START",
           14: "SWITCH", 15: "SWITCH_CPU_WIDE", 17: "KSYMBOL"}
CHUNK_MAX = 16 << 20


class Broken(Exception):
    def __init__(self, kind, offset, why):
        super().__init__(why)
        self.kind, self.offset = kind, offset


class Payload:
    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, n):
        if self.at + n > len(self.data):
            raise ValueError("payload too short")
        self.at += n
        return self.data[self.at - n:self.at]

    def numbers(self, shape):
        return struct.unpack("<" + shape, self.bytes(struct.calcsize("<" + shape)))

    def string(self):
        return self.bytes(*self.numbers("I"))

    def rest(self):
        return self.bytes(len(self.data) - self.at)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def frame_content(frame, raw):
    """The content of one zstd frame; RFC 8878 for the header."""
    if frame[:4] != b"\x28\xb5\x2f\xfd":
        raise ValueError("no zstd frame")
    descriptor = frame[4]
    if not descriptor & 4:
        raise ValueError("no checksum")
    single = descriptor & 0x20
    at = 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3]
    size = (1 if single else 0, 2, 4, 8)[descriptor >> 6]
    content = int.from_bytes(frame[at:at + size], "little") + (256 if size == 2 else 0)
    if size == 0 or content != raw:
        raise ValueError("content size")
    run = subprocess.run(["zstd", "-dcq"], input=frame, capture_output=True)
    if run.returncode or len(run.stdout) != raw:
        raise ValueError("zstd: " + run.stderr.decode())
    return run.stdout


def chunks(data):
    """Yields (type, stream, offset, stored bytes with header, payload); raises Broken."""
    if len(data) < 16 or data[:8] != b"\x89PTC\r\n\x1a\n":
        raise SystemExit("not a container")
    if zlib.crc32(data[:12]) != struct.unpack_from("<I", data, 12)[0] or struct.unpack_from("<H", data, 8)[0] != 1:
        raise SystemExit("bad file header")
    at, number = 16, 0
    while True:
        header = data[at:at + 40]
        if len(header) < 40:
            raise Broken("cut", len(data), "header")
        magic, kind, flags, stream, n, stored, raw, crc_frame, crc = struct.unpack("<4sHHIIQQII", header)
        if magic != b"PTCK" or crc != zlib.crc32(header[:36]) or n != number or raw > CHUNK_MAX:
            raise Broken("damaged", at, "header")
        frame = data[at + 40:at + 40 + stored]
        if len(frame) < stored:
            raise Broken("cut", len(data), "frame")
        # Of the small ones, for it is slow here.
        if flags & 1 and stored < 4096 and crc32c(frame) != crc_frame:
            raise Broken("damaged", at, "crc32c")
        try:
            payload = frame_content(frame, raw)
        except ValueError as why:
            raise Broken("damaged", at, str(why))
        if kind == 10 and struct.unpack_from("<Q", payload)[0] != number:
            raise Broken("damaged", at, "end")
        yield kind, stream, at, 40 + stored, payload
        at += 40 + stored
        number += 1
        if kind == 10:
            check_index(data, at, number)
            return


def check_index(data, at, number):
    if at == len(data):
        return
    where, magic = struct.unpack("<Q8s", data[-16:])
    stored, raw = struct.unpack_from("<QQ", data, at + 16)
    if magic != b"PTCINDEX" or where != at or at + 40 + stored + 16 != len(data) or raw != number * 32:
        raise SystemExit("bad index")
    index = frame_content(data[at + 40:at + 40 + stored], raw)
    for i in range(number):
        offset, kind, _, stream = struct.unpack_from("<QHHI", index, 32 * i)
        if data[offset:offset + 4] != b"PTCK" or (kind, stream) != (
                struct.unpack_from("<H", data, offset + 4)[0], struct.unpack_from("<I", data, offset + 8)[0]):
            raise SystemExit("bad index entry")


def unescape(text):
    out, rest = "", iter(text)
    for c in rest:
        if c == "\\":
            c = next(rest)
            c = "\n" if c == "n" else c
        out += c
    return out


class Summary:
    def __init__(self):
        self.meta, self.streams, self.records, self.images, self.chunks = {}, {}, {}, {}, {}
        self.record_bytes = self.symbols = self.rounds = 0

    def image(self, kind, machine, pid, build_id, name):
        key = (kind, machine, pid, build_id, name)
        return self.images.setdefault(key, {
            "name": name.decode(errors="replace"), "kind": "file" if kind == 1 else "memory",
            "build_id": build_id.hex() or None, "machine_pid": machine, "pid": pid, "bytes": 0, "symbols": 0,
            "versions": 0})

    def add(self, kind, stream, data):
        p = Payload(data)
        if kind == 1:
            for line in data.decode(errors="replace").split("\n")[:-1]:
                key, value = line.split("=", 1)
                self.meta[key] = unescape(value)
        elif kind == 2:
            _, cpu, pid, tid, _, snapshot = p.numbers("IiiiII")
            self.streams[stream] = {"stream": stream, "cpu": cpu, "pid": pid, "tid": tid, "snapshot": bool(snapshot),
                                    "pieces": 0, "bytes": 0, "first_offset": 0, "end_offset": 0}
        elif kind == 3:
            seq, offset, _, _ = p.numbers("QQQQ")
            s, n = self.streams[stream], len(p.rest())
            assert seq == s["pieces"]
            if seq == 0:
                s["first_offset"] = offset
            s["pieces"] += 1
            s["bytes"] += n
            s["end_offset"] = offset + n
        elif kind == 5:
            p.numbers("II")
            self.record_bytes += len(data) - p.at
            while p.at < len(data):
                record, _, size = p.numbers("IHH")
                p.bytes(size - 8)
                name = RECORDS.get(record, str(record))
                self.records[name] = self.records.get(name, 0) + 1
        elif kind == 6:
            image, machine, pid, continues, _, _, _ = p.numbers("IiiIQQQ")
            build_id, name = p.string(), p.string()
            i = self.image(image, machine, pid, build_id, name)
            i["bytes"] += len(p.bytes(*p.numbers("Q")))
            i["versions"] += not continues
        elif kind == 7:
            machine, pid, absolute, count = p.numbers("iiII")
            build_id, name = p.string(), p.string()
            p.bytes(24 * count)
            strings = p.bytes(*p.numbers("Q"))
            assert count == 0 or strings[-1] == 0
            self.image(2 if absolute else 1, machine, pid, build_id, name)["symbols"] += count
            self.symbols += count
        elif kind == 8:
            self.rounds += 1


def summarize(data):
    s, error, end = Summary(), None, 16
    try:
        for kind, stream, at, stored, payload in chunks(data):
            c = s.chunks.setdefault(TYPES.get(kind, "unknown"), {"count": 0, "raw_bytes": 0, "stored_bytes": 0})
            c["count"] += 1
            c["raw_bytes"] += len(payload)
            c["stored_bytes"] += stored
            end = at + stored
            s.add(kind, stream, payload)
    except Broken as broken:
        error = {"kind": broken.kind, "offset": broken.offset}
    out = {"complete": error is None, "meta": s.meta, "streams": list(s.streams.values()),
           "sideband": {"records": sum(s.records.values()), "bytes": s.record_bytes, "types": s.records},
           "images": list(s.images.values()), "symbols": s.symbols, "rounds": s.rounds, "chunks": s.chunks}
    if error:
        out["error"] = error
    else:
        out["bytes"] = end
    return out


def differences(want, got, path=""):
    """What we say must be there, and equal; more may be there."""
    if isinstance(want, dict) and isinstance(got, dict):
        for key, value in want.items():
            if key not in got:
                yield f"{path}.{key}: missing"
            else:
                yield from differences(value, got[key], f"{path}.{key}")
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for i, value in enumerate(want):
            yield from differences(value, got[i], f"{path}[{i}]")
    elif want != got:
        yield f"{path}: {want!r} here, {got!r} there"


def main():
    if sys.argv[1] == "--aux":
        data = open(sys.argv[3], "rb").read()
        for kind, stream, _, _, payload in chunks(data):
            if kind == 3 and stream == int(sys.argv[2]):
                sys.stdout.buffer.write(payload[32:])
        return 0
    summary = summarize(open(sys.argv[1], "rb").read())
    if len(sys.argv) == 2:
        print(json.dumps(summary, indent=1))
        return 0
    found = list(differences(summary, json.load(open(sys.argv[2]))))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
