#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Write the events of an ftrace text as Perfetto writes them.

usage: perfetto.py TEXT OUT

The numbers of the fields are those of protos/perfetto/trace in Perfetto's sources. CPUs take turns, as they do when their
buffers are read; every other packet is compressed. Events without a public number are named (even ones) or described (odd
ones).
"""
import re, sys, zlib

LINE = re.compile(r"^ *(.*)-(\d+) +(?:\( *(\d+|-+)\) +)?\[(\d+)\] (?:\S+ )?(\d+)\.(\d{6,9}): (\w+): (.*)$")
ROUND_NS = 50_000_000
FIRST_DESCRIBED = 65536
NUMBERS = {
    "ext4_da_write_begin": (41, "dev ino pos len flags"),
    "block_rq_issue": (45, "dev sector nr_sector bytes rwbs comm cmd"),
    "block_bio_queue": (119, "dev sector nr_sector rwbs comm"),
    "block_bio_remap": (120, "dev sector nr_sector old_dev old_sector rwbs"),
    "block_rq_complete": (125, "dev sector nr_sector errors rwbs cmd error"),
    "block_rq_insert": (126, "dev sector nr_sector bytes rwbs comm cmd"),
    "ext4_evict_inode": (160, "dev ino nlink"),
    "ext4_ext_map_blocks_exit": (167, "dev ino flags pblk lblk len mflags ret"),
    "ext4_free_blocks": (178, "dev ino block count flags mode"),
}
FLAGS = dict(CREATE=1, UNWRIT=2, DELALLOC=4, PRE_IO=8, CONVERT=0x10, METADATA_NOFAIL=0x20,
             NO_NORMALIZE=0x40, CONVERT_UNWRITTEN=0x100, ZERO=0x200, IO_SUBMIT=0x400)


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7f:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


def field(number, value):
    """A field: a number, or a string, bytes or message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def dev(text):
    major, minor = map(int, text.strip("()").split(","))
    return major << 8 | minor & 0xff | (minor & ~0xff) << 12


def of_request(event, text):
    """The fields of an event of the block layer."""
    device, rest = text.split(" ", 1)
    values = {"dev": dev(device)}
    words = rest.split()
    values["rwbs"] = words.pop(0)
    if event in ("block_rq_insert", "block_rq_issue"):
        values["bytes"] = int(words.pop(0))
    if event.startswith("block_rq"):
        values["cmd"] = words.pop(0).strip("()")
    values["sector"], values["nr_sector"] = int(words[0]), int(words[2])
    last = text[text.index("[") + 1:text.rindex("]")] if "[" in text else ""
    if event == "block_rq_complete":
        values["error"] = int(last)
    elif event == "block_bio_remap":
        old = re.search(r"<- \((\S+)\) (\d+)", text)
        values["old_dev"], values["old_sector"] = dev(old[1]), int(old[2])
    else:
        values["comm"] = last
    return values


def of_file(text):
    """The fields of an event of a filesystem: `name value`, or `name = value,`."""
    values = {}
    if text.startswith("entry_name "):
        path, rest = re.fullmatch(r"entry_name (.*?), (offset .*)", text).groups()
        values["pathbuf"] = path
        text = rest
    for name, value in re.findall(r"(\w+)(?: = |=| )(\([^)]*\)|[^ ,]*,[0-9]+(?= )|[^ ,]*)", text):
        if name == "dev":
            values[name] = dev(value)
        elif name == "flags":
            values[name] = sum(FLAGS.get(flag, 0) for flag in value.split("|"))
        elif re.fullmatch(r"-?\d+", value):
            values[name] = int(value)
        elif value.startswith("0x"):
            values[name] = int(value, 16)
        else:
            values[name] = value
    if "rw" in values:
        values["op"] = int(values.pop("rw").startswith("WRITE"))
        values["type"] = {"DATA": 0, "NODE": 1}[values["type"].split("_")[-1]]
    rename = {"page_index": "index", "newaddr": "new_blkaddr", "oldaddr": "old_blkaddr"}
    return {rename.get(name, name): value for name, value in values.items()}


class Described:
    """The events without a number that are described by the trace."""

    def __init__(self):
        self.known = {}

    def number(self, event, names):
        """The number of an event, and its description if that is new."""
        key = (event, tuple(names))
        if key in self.known:
            return self.known[key], b""
        number = self.known[key] = FIRST_DESCRIBED + len(self.known)
        fields = b"".join(field(2, field(1, name) + field(3, at)) for at, name in enumerate(names, 1))
        return number, field(11, field(1, number) + field(2, field(1, event) + fields))


def main():
    with open(sys.argv[1]) as text:
        parsed = [LINE.match(line) for line in text]
    rounds, threads, described, generic = {}, {}, Described(), 0
    for comm, thread, process, cpu, s, fraction, event, rest in (m.groups() for m in parsed if m):
        time = int(s) * 10**9 + int(fraction.ljust(9, "0"))
        if process and process.isdigit():
            threads[int(thread)] = (int(process), comm)
        values = of_request(event, rest) if event.startswith("block_") else of_file(rest)
        description = b""
        if event in NUMBERS:
            number, names = NUMBERS[event]
            names = names.split()
            body = b"".join(field(names.index(k) + 1, v) for k, v in values.items() if k in names)
        else:
            generic += 1
            if generic % 2:
                number = 327
                body = field(1, event) + b"".join(
                    field(2, field(1, k) + field(5 if isinstance(v, int) else 3, v)) for k, v in values.items())
            else:
                number, description = described.number(event, list(values))
                body = b"".join(field(at, v) for at, v in enumerate(values.values(), 1))
        told = field(2, field(1, time) + field(2, int(thread)) + field(number, body))
        bundle = rounds.setdefault((time // ROUND_NS, int(cpu)), bytearray())
        bundle += description + told
    packets = [field(34, field(1, 1) + field(2, field(1, 0) + field(3, 5)))]
    for at, ((_, cpu), bundle) in enumerate(sorted(rounds.items())):
        packet = field(10, 1) + field(1, field(1, cpu) + bytes(bundle))
        packets.append(field(50, zlib.compress(field(1, packet))) if at % 2 else packet)
    tree = b"".join(field(1, field(1, p) + field(3, comm)) for t, (p, comm) in threads.items() if t == p)
    tree += b"".join(field(2, field(1, t) + field(3, p)) for t, (p, _) in threads.items() if t != p)
    packets.append(field(2, tree))
    packets.append(field(34, field(1, 2) + field(2, field(1, 0) + field(3, 12))))
    with open(sys.argv[2], "wb") as out:
        out.write(b"".join(field(1, packet) for packet in packets))


main()
