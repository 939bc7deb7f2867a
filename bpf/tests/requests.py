#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes each kind of request to io_uring, and says what it asked for.

requests.py FOLDER LOG   FOLDER is the root of a filesystem. Each request goes to the file LOG: `kind|path|other|result`, and
                         behind that, of those that have a place, `|offset|bytes`
"""

import ctypes
import mmap
import os
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
SETUP, ENTER, REGISTER = 425, 426, 427
ENTRIES = 8
WRITEV, FSYNC, WRITE_FIXED, SYNC_FILE_RANGE, FALLOCATE, OPENAT, CLOSE = 2, 3, 5, 8, 17, 18, 19
READ, WRITE, FADVISE, OPENAT2, SPLICE, RENAMEAT, UNLINKAT, MKDIRAT, SYMLINKAT, LINKAT = 22, 23, 24, 28, 30, 35, 36, 37, 38, 39
FSETXATTR, SETXATTR, FTRUNCATE = 41, 42, 55
FIXED_FILE, LINK, ASYNC, SKIP_SUCCESS = 1, 4, 16, 64
CWD = -100


def syscall(*args):
    result = libc.syscall(*[ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args])
    if result < 0:
        raise OSError(ctypes.get_errno(), f"syscall {args[0]}")
    return result


class Ring:
    def __init__(self):
        params = ctypes.create_string_buffer(120)
        self.fd = syscall(SETUP, ENTRIES, params)
        sq, cq = struct.unpack_from("8I", params, 40), struct.unpack_from("8I", params, 80)
        self.sq_tail, self.sq_mask, self.sq_array = sq[1], sq[2], sq[6]
        self.cq_head, self.cq_tail, self.cq_mask, self.cqes = cq[0], cq[1], cq[2], cq[5]
        size = max(self.sq_array + 4 * ENTRIES, self.cqes + 16 * 2 * ENTRIES)
        self.ring = mmap.mmap(self.fd, size, offset=0)
        self.sqes = mmap.mmap(self.fd, 64 * ENTRIES, offset=0x10000000)
        self.kept = []

    def word(self, at):
        return struct.unpack_from("I", self.ring, at)[0]

    def push(self, op, fd=-1, off=0, addr=0, length=0, op_flags=0, flags=0, index=0, slot=0, addr3=0):
        address = lambda of: ctypes.addressof(of) if isinstance(of, ctypes.Array) else of
        self.kept.append((off, addr, addr3))
        tail = self.word(self.sq_tail)
        at = tail & self.word(self.sq_mask)
        sqe = struct.pack("BBHiQQIIQHHIQQ", op, flags, 0, fd, address(off) & (1 << 64) - 1, address(addr), length & (1 << 32) - 1,
                          op_flags, tail, index, 0, slot, address(addr3), 0)
        self.sqes[64 * at : 64 * at + 64] = sqe
        struct.pack_into("I", self.ring, self.sq_array + 4 * at, at)
        struct.pack_into("I", self.ring, self.sq_tail, tail + 1)
        return tail

    def submit(self, count, wait):
        """Submits, waits for so many completions, and returns their results by the number of the request."""
        syscall(ENTER, self.fd, count, wait, 1, None, 0)
        results = {}
        while self.word(self.cq_head) != self.word(self.cq_tail):
            head = self.word(self.cq_head)
            data, result, _ = struct.unpack_from("QiI", self.ring, self.cqes + 16 * (head & self.word(self.cq_mask)))
            results[data] = result
            struct.pack_into("I", self.ring, self.cq_head, head + 1)
        return results

    def one(self, *args, **named):
        number = self.push(*args, **named)
        return self.submit(1, 1)[number]


def text(string):
    return ctypes.create_string_buffer(string.encode())


def vector(*lengths):
    buffers = [ctypes.create_string_buffer(length) for length in lengths]
    parts = [part for buffer in buffers for part in (ctypes.addressof(buffer), len(buffer))]
    array = (ctypes.c_uint64 * len(parts))(*parts)
    array.buffers = buffers
    return array


def main(root, log):
    out = open(log, "w", encoding="ascii")
    say = lambda *words: print("|".join(map(str, words)), file=out, flush=True)
    os.chdir(root)
    ring = Ring()
    x = ctypes.create_string_buffer(b"x" * 10000, 10000)
    say("mkdir", "r", "", ring.one(MKDIRAT, CWD, addr=text("r"), length=0o755))
    d = os.open("r", os.O_RDONLY | os.O_DIRECTORY)
    say("open", "r", "", 0)
    say("mkdir", "r", "", ring.one(MKDIRAT, CWD, addr=text("r"), length=0o755))
    f = ring.one(OPENAT, d, addr=text("a"), length=0o640, op_flags=os.O_RDWR | os.O_CREAT)
    say("open", "r/a", "", min(f, 0))
    say("open", "r/missing", "", ring.one(OPENAT, d, addr=text("missing"), op_flags=os.O_RDWR))

    def write(result, offset, length, path="r/a"):
        say("write", path, "", result, offset, length)

    write(ring.one(WRITE, f, 0, x, 5000), 0, 5000)
    write(ring.one(WRITE, f, 9000, x, 100, flags=ASYNC), 9000, 100)
    write(ring.one(WRITEV, f, 20000, vector(10, 20, 30), 3), 20000, 60)
    os.lseek(f, 500, os.SEEK_SET)
    write(ring.one(WRITE, f, -1, x, 7), 500, 7)
    fixed = ctypes.create_string_buffer(4096)
    syscall(REGISTER, ring.fd, 0, (ctypes.c_uint64 * 2)(ctypes.addressof(fixed), 4096), 1)
    write(ring.one(WRITE_FIXED, f, 4096, fixed, 4096), 4096, 4096)
    say("read", "r/a", "", ring.one(READ, f, 100, x, 400), 100, 400)
    say("fsync", "r/a", "", ring.one(FSYNC, f))
    say("fdatasync", "r/a", "", ring.one(FSYNC, f, op_flags=1))
    say("sync_range", "r/a", "", ring.one(SYNC_FILE_RANGE, f, 4096, 0, 8192, 7), 4096, 8192)
    say("fallocate", "r/a", "", ring.one(FALLOCATE, f, 0, 40000, 1), 0, 40000)
    say("fadvise", "r/a", "", ring.one(FADVISE, f, 0, 0, 0, 4), 0, 0)
    say("setxattr", "r/a", "user.one", ring.one(FSETXATTR, f, text("12345"), text("user.one"), 5))
    say("setxattr", "r/a", "user.two", ring.one(SETXATTR, 0, text("12"), text("user.two"), 2, addr3=text("r/a")))
    truncated = ring.one(FTRUNCATE, f, 18000)
    if truncated != -22:
        say("truncate", "r/a", "", truncated)
    reading, writing = os.pipe()
    os.write(writing, b"z" * 300)
    say("copy", "r/a", "", ring.one(SPLICE, f, 100, (1 << 64) - 1, 300, slot=reading), 100, 300)

    # A chain that tells only its end; what succeeds without a word has succeeded.
    ring.push(WRITE, f, 30000, x, 11, flags=LINK | SKIP_SUCCESS)
    ring.push(WRITEV, f, 31000, vector(5, 6), 2, flags=LINK | SKIP_SUCCESS)
    ring.push(MKDIRAT, d, addr=text("silent"), length=0o700, flags=LINK | SKIP_SUCCESS)
    last = ring.push(FSYNC, f)
    result = ring.submit(4, 1)[last]
    write(11, 30000, 11)
    write(11, 31000, 11)
    say("mkdir", "r/silent", "", 0)
    say("fsync", "r/a", "", result)
    # It fails, and so has a completion.
    write(ring.one(WRITE, f, 32000, 1, 10, flags=SKIP_SUCCESS), 32000, 10)

    # A registered file, which is opened into its slot and has no descriptor.
    syscall(REGISTER, ring.fd, 2, (ctypes.c_int32 * 2)(-1, -1), 2)
    slotted = ring.one(OPENAT, d, addr=text("slot"), length=0o600, op_flags=os.O_WRONLY | os.O_CREAT, slot=2)
    say("open", "r/slot", "", slotted)
    write(ring.one(WRITE, 1, 0, x, 33, flags=FIXED_FILE), 0, 33, "r/slot")
    say("fsync", "r/slot", "", ring.one(FSYNC, 1, flags=FIXED_FILE))
    ring.one(CLOSE, 0, slot=2)

    how = (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600, 0)
    g = ring.one(OPENAT2, d, how, text("log"), 24)
    say("open", "r/log", "", min(g, 0))
    say("write", "r/log", "", ring.one(WRITE, g, 0, x, 9), (1 << 64) - 1, 9)
    ring.one(CLOSE, g)
    say("link", "r/a", "r/b", ring.one(LINKAT, d, text("b"), text("a"), d))
    say("symlink", "r/soft", "a", ring.one(SYMLINKAT, d, text("soft"), text("a")))
    say("rename", "r/b", "c", ring.one(RENAMEAT, d, text("c"), text("b"), CWD))
    say("unlink", "c", "", ring.one(UNLINKAT, CWD, addr=text(f"{root}/c")))
    say("rmdir", "r/silent", "", ring.one(UNLINKAT, d, addr=text("silent"), op_flags=0x200))
    ring.one(CLOSE, f)
    os.close(d)


if __name__ == "__main__":
    main(*sys.argv[1:])
