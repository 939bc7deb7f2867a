#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Record one loop device with ftrace's blk tracer into per-CPU blktrace files.

usage: capture.py DEVICE OUT COMMAND      (root; tracefs on /sys/kernel/tracing)

How the real traces beside this script were made; `make.sh` has the workloads. It is kept apart from
mostrace's own recorder so that the reader is not tested against its own writer alone.
"""
import os, re, select, struct, subprocess, sys, threading

TRACEFS = "/sys/kernel/tracing/"
OPTIONS = {"options/bin": "1", "options/blk_classic": "0", "options/context-info": "1"}


def put(path, value):
    with open(path, "w") as f:
        f.write(value)


def get(path):
    with open(path) as f:
        return f.read()


def drain(fd, chunks, done):
    """Read trace_pipe until `done` is set and nothing is left."""
    while True:
        ready, _, _ = select.select([fd], [], [], 0.2)
        if not ready:
            if done.is_set():
                return
            continue
        try:
            data = os.read(fd, 1 << 20)
        except BlockingIOError:
            data = b""
        if data:
            chunks.append(data)
        elif done.is_set():
            return


def split(stream):
    """The binary trace_pipe (pid, cpu, time, then a v7 record) as {cpu: bytes}."""
    files, at = {}, 0
    while at < len(stream):
        if stream[at:at + 4] == b"CPU:":
            sys.exit("events were lost: %r" % stream[at:at + 40])
        pid, cpu, ts = struct.unpack_from("=iiQ", stream, at)
        at += 16
        magic, = struct.unpack_from("=I", stream, at)
        if magic != 0x65617407:
            sys.exit("unexpected magic %#x at %d" % (magic, at))
        pdu_len, = struct.unpack_from("=H", stream, at + 46)
        end = at + 48 + pdu_len
        files.setdefault(cpu, bytearray()).extend(stream[at:end])
        at = end
    return files


def main(device, out, command):
    if get(TRACEFS + "current_tracer").strip() != "nop":
        sys.exit("a tracer is already in use")
    name = os.path.basename(device)
    enable = "/sys/block/%s/trace/enable" % name
    clock = re.search(r"\[(\w+)\]", get(TRACEFS + "trace_clock")).group(1)
    size = get(TRACEFS + "buffer_size_kb").split()[0]
    chunks, done = [], threading.Event()
    try:
        put(TRACEFS + "trace_clock", "mono")
        put(TRACEFS + "buffer_size_kb", "8192")
        put(TRACEFS + "current_tracer", "blk")
        old = {k: get(TRACEFS + k).strip() for k in OPTIONS}
        for k, v in OPTIONS.items():
            put(TRACEFS + k, v)
        put(enable, "1")
        fd = os.open(TRACEFS + "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        reader = threading.Thread(target=drain, args=(fd, chunks, done))
        reader.start()
        subprocess.run(["sh", "-ec", command], check=True)
        put(enable, "0")
        done.set()
        reader.join()
        os.close(fd)
        for k, v in old.items():
            put(TRACEFS + k, v)
    finally:
        done.set()
        put(enable, "0")
        put(TRACEFS + "current_tracer", "nop")
        put(TRACEFS + "trace_clock", clock)
        put(TRACEFS + "buffer_size_kb", size)
    for cpu, data in split(b"".join(chunks)).items():
        with open("%s.blktrace.%d" % (out, cpu), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main(*sys.argv[1:4])
