#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Changes files in ways that the shell does not have: changes.py WAY FOLDER."""

import ctypes
import mmap
import os
import struct
import sys
import time

PAGE = 4096
libc = ctypes.CDLL(None, use_errno=True)


def syscall(*args):
    result = libc.syscall(*(ctypes.c_long(arg) for arg in args))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


class Uring:
    """A ring of io_uring by its system calls; <linux/io_uring.h> has the layouts."""

    WRITE, READ, RENAMEAT, UNLINKAT, MKDIRAT, SYMLINKAT, LINKAT = 23, 22, 35, 36, 37, 38, 39
    SKIP = 1 << 6

    def __init__(self, entries):
        params = ctypes.create_string_buffer(120)
        self.fd = syscall(425, entries, ctypes.addressof(params))
        words = struct.unpack("<30I", params.raw)
        (self.head, self.tail, self.mask, _, _, _, self.array) = words[10:17]
        (self.cq_head, self.cq_tail, self.cq_mask, _, _, self.cqes) = words[20:26]
        rings = max(self.array + 4 * words[0], self.cqes + 16 * words[1])
        self.ring = mmap.mmap(self.fd, rings, offset=0)
        self.sqes = mmap.mmap(self.fd, 64 * words[0], offset=0x10000000)

    def word(self, at):
        return struct.unpack_from("<I", self.ring, at)[0]

    def submit(self, opcode, flags, fd, off, addr, length, op_flags=0):
        tail = self.word(self.tail)
        slot = tail & self.word(self.mask)
        sqe = struct.pack("<BBHiQQII", opcode, flags, 0, fd, off, addr, length, op_flags)
        self.sqes[64 * slot : 64 * slot + 64] = sqe.ljust(64, b"\0")
        struct.pack_into("<I", self.ring, self.array + 4 * slot, slot)
        struct.pack_into("<I", self.ring, self.tail, tail + 1)
        syscall(426, self.fd, 1, 0, 0, 0, 0)

    def result(self):
        syscall(426, self.fd, 0, 1, 1, 0, 0)
        head = self.word(self.cq_head)
        at = self.cqes + 16 * (head & self.word(self.cq_mask))
        struct.pack_into("<I", self.ring, self.cq_head, head + 1)
        return struct.unpack_from("<QiI", self.ring, at)[1]


def uring_without_completions(folder):
    """Writes five pages whose requests post no completion, then has the same requests read 100 bytes each."""
    fd = os.open(folder + "/f", os.O_RDWR | os.O_CREAT)
    ring = Uring(8)
    page = ctypes.create_string_buffer(b"x" * PAGE, PAGE)
    for nth in range(5):
        at = 2 * nth * PAGE
        ring.submit(Uring.WRITE, Uring.SKIP, fd, at, ctypes.addressof(page), PAGE)
        while os.fstat(fd).st_size < at + PAGE:
            time.sleep(0.001)
    os.fsync(fd)
    for nth in range(64):
        ring.submit(Uring.READ, 0, fd, 0, ctypes.addressof(page), 100)
        assert ring.result() == 100


def uring_paths(folder):
    os.chdir(folder)
    names = [ctypes.create_string_buffer(name) for name in (b"a", b"b", b"d", b"l", b"s")]
    a, b, d, l, s = map(ctypes.addressof, names)
    here = -100
    for name in "ab":
        open(name, "w").write("x")
    ring = Uring(8)
    print(os.stat("a").st_ino, os.stat("b").st_ino)
    for opcode, fd, off, addr, length in (
        (Uring.MKDIRAT, here, 0, d, 0o755),
        (Uring.SYMLINKAT, here, s, a, 0),
        (Uring.LINKAT, here, l, a, here & 0xFFFFFFFF),
        (Uring.RENAMEAT, here, b, a, here & 0xFFFFFFFF),
        (Uring.UNLINKAT, here, 0, b, 0),
    ):
        ring.submit(opcode, 0, fd, off, addr, length)
        assert ring.result() == 0, opcode


def mapped(folder):
    """Writes to a file that is mapped, and to one that is not."""
    for name in "mn":
        open(f"{folder}/{name}", "wb").write(b"x" * 4 * PAGE)
    os.sync()
    fd = os.open(folder + "/m", os.O_RDWR)
    with mmap.mmap(fd, 2 * PAGE, offset=PAGE) as memory:
        for name in "mn":
            file = os.open(f"{folder}/{name}", os.O_RDWR)
            os.pwrite(file, b"y", 0)
            os.fsync(file)
        memory[0:1] = b"z"
    os.fsync(fd)


def spliced(folder):
    source, target = (os.open(folder + name, os.O_RDWR | os.O_CREAT) for name in ("/s", "/t"))
    os.write(source, b"x" * 4 * PAGE)
    os.copy_file_range(source, target, PAGE, 0, 3 * PAGE)
    os.lseek(target, 5 * PAGE, os.SEEK_SET)
    os.sendfile(target, source, 0, 2 * PAGE)
    pipe = os.pipe()
    os.write(pipe[1], b"y" * 1000)
    os.splice(pipe[0], target, 1000, offset_dst=9 * PAGE)


def appended(folder):
    fd = os.open(folder + "/f", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    os.write(fd, b"x" * 3000)
    os.pwrite(fd, b"y" * 500, 0)


def submitted(folder):
    """Writes two pages by io_submit; struct iocb is in <linux/aio_abi.h>."""
    fd = os.open(folder + "/f", os.O_RDWR | os.O_CREAT)
    context = ctypes.c_ulong()
    syscall(206, 4, ctypes.addressof(context))
    page = ctypes.create_string_buffer(b"x" * PAGE, PAGE)
    address = ctypes.addressof(page)
    iocbs = [
        ctypes.create_string_buffer(struct.pack("<QIIHhIQQQQ", 0, 0, 0, 1, 0, fd, address, PAGE, at, 0), 64)
        for at in (PAGE, 7 * PAGE)
    ]
    pointers = (ctypes.c_void_p * 2)(*map(ctypes.addressof, iocbs))
    assert syscall(209, context.value, 2, ctypes.addressof(pointers)) == 2
    events = ctypes.create_string_buffer(64)
    assert syscall(208, context.value, 2, 2, ctypes.addressof(events), 0) == 2


def direct(folder):
    """Writes two pages of a file before and after each change of its name, its links, the task's name and its user."""

    def rename_task():
        libc.prctl(15, b"renamed", 0, 0, 0)

    def remove():
        os.remove(folder + "/e/g")
        os.remove(folder + "/h")

    def replace():
        nonlocal file
        os.close(file)
        file = opened("/new")

    def opened(name):
        fd = os.open(folder + name, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        os.posix_fallocate(fd, 0, 1 << 20)
        for page in range(32):
            os.pwrite(fd, buffer, page * PAGE)
        os.fsync(fd)
        return fd

    # Each CPU remembers for itself.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    buffer = mmap.mmap(-1, PAGE)
    os.mkdir(folder + "/d")
    file = opened("/d/f")
    changes = [
        lambda: None,
        lambda: os.rename(folder + "/d/f", folder + "/d/g"),
        lambda: os.link(folder + "/d/g", folder + "/h"),
        lambda: os.rename(folder + "/d", folder + "/e"),
        rename_task,
        lambda: os.setreuid(7, -1),
        remove,
        replace,
    ]
    for nth, change in enumerate(changes):
        change()
        for page in range(2):
            os.pwrite(file, buffer, (64 + 2 * nth + page) * PAGE)


def many_pages(folder):
    """Dirties more pages than the probes remember, far enough apart that each is a folio of its own."""
    fd = os.open(folder + "/f", os.O_RDWR | os.O_CREAT)
    for nth in range(200_000):
        os.pwrite(fd, b"x", nth * PAGE)
    os.fsync(fd)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
