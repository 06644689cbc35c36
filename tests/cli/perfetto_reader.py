"""perfetto_reader.py TRACE - reads a Perfetto trace by protobuf's wire format, and prints what is on its tracks, a line each with tabs:
  slice  CATEGORY TRACK NAME BEGIN_NS END_NS FLOW FLOW_END DEPTH    mark  CATEGORY TRACK NAME TIME_NS    count  TRACK TIME_NS VALUE
  argument CATEGORY NAME ARGUMENT VALUE        track  UUID PARENT NAME PID TID
Exit 1: slices that do not nest, times that go back on a track, names that nobody said."""
import struct
import sys


def fields(data):
    """(number, value) of each field: an integer, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 1:
            yield key >> 3, data[at:at + 8]
            at += 8
        elif key & 7 == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        else:
            raise ValueError(f"wire type {key & 7}")


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def argument(data):
    found = dict(fields(data))
    name = found.pop(10).decode()
    (number, value), = found.items()
    if number == 6:
        return name, value.decode()
    return name, hex(value) if number == 7 else signed(value)


names, open_slices, last, cleared = {}, {}, {}, False
for number, packet in fields(open(sys.argv[1], "rb").read()):
    assert number == 1
    p = dict(fields(packet))
    assert p[10] == 1 and p[13] == (2 if cleared else 1)
    cleared = True
    for _, name in fields(p.get(12, b"")):
        n = dict(fields(name))
        names[n[1]] = n[2].decode()
    if 60 in p:
        t = dict(fields(p[60]))
        inner = dict(fields(t.get(3, t.get(4, b""))))
        name = t.get(2, inner.get(6, inner.get(5, b""))).decode()
        print("track", t[1], t.get(5, 0), name, inner.get(1, 0), inner.get(2, 0), sep="\t")
        continue
    e, arguments, categories = {}, [], []
    for number, value in fields(p[11]):
        if number == 4:
            arguments.append(argument(value))
        elif number == 22:
            categories.append(value.decode())
        else:
            e[number] = value
    track, time, kind = e[11], signed(p[8]), e[9]
    if kind in (1, 2):
        assert last.get(track, time) <= time, f"track {track}: {time} after {last[track]}"
        last[track] = time
    if kind == 1:
        flow = [str(struct.unpack("<Q", e[n])[0]) if n in e else "" for n in (47, 48)]
        open_slices.setdefault(track, []).append((categories[0], names[e[10]], time, flow))
    elif kind == 2:
        category, name, begin, flow = open_slices[track].pop()
        print("slice", category, track, name, begin, time, *flow, len(open_slices[track]), sep="\t")
    elif kind == 3:
        print("mark", categories[0], track, names[e[10]], time, sep="\t")
    else:
        print("count", track, time, struct.unpack("<d", e[44])[0], sep="\t")
    for name, value in arguments:
        print("argument", categories[0], names[e[10]], name, value, sep="\t")
assert not any(open_slices.values())
