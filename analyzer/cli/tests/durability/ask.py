#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Asks for durability in every way that a program can, one way at a time.

ask.py             says the ways: NAME|MOUNT OPTIONS|CALLS FOR DURABILITY A ROUND|THOSE AHEAD OF THE FIRST ROUND
ask.py NAME ROUNDS asks in that way in the current folder, the root of an ext4
"""

import ctypes
import fcntl
import mmap
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../bpf/tests"))
import requests  # noqa: E402

libc = ctypes.CDLL(None, use_errno=True)
IO_SETUP, IO_SUBMIT, IO_GETEVENTS = 206, 209, 208
if os.uname().machine == "aarch64":
    IO_SETUP, IO_SUBMIT, IO_GETEVENTS = 0, 2, 4
PWRITE, FSYNC, FDSYNC = 1, 2, 3
RWF_DSYNC, RWF_SYNC = 2, 4
FS_IOC_SETFLAGS, FIFREEZE, FITHAW, EXT4_IOC_CHECKPOINT = 0x40086602, 0xC0045877, 0xC0045878, 0x4004662B
FS_SYNC_FL, FS_DIRSYNC_FL, FS_EXTENT_FL = 0x8, 0x10000, 0x80000
SIZE = 8192
WAYS = {}


def way(asks=1, mount="", name=None, ahead=0):
    """Adds a way: a generator that prepares, and then yields before each round."""

    def add(function):
        WAYS[name or function.__name__] = (mount, asks, ahead, function)
        return function

    return add


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno() or -result, os.strerror(ctypes.get_errno() or -result))
    return result


def new(flags=0, name="file"):
    return os.open(name, os.O_RDWR | os.O_CREAT | flags, 0o644)


def full(flags=0):
    """Makes a file whose blocks are there and written, opened with these flags."""
    fd = new()
    os.write(fd, b"y" * SIZE * 64)
    os.fsync(fd)
    os.close(fd)
    return os.open("file", os.O_RDWR | flags)


def aligned():
    buffer = mmap.mmap(-1, SIZE)
    buffer.write(b"x" * SIZE)
    return buffer


def flagged(name, flags):
    fd = os.open(name, os.O_RDONLY)
    fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("l", flags))
    os.close(fd)


def syncing(call):
    def rounds():
        fd = new()
        while True:
            os.write(fd, b"x" * SIZE)
            yield
            call(fd)

    return rounds


way(name="fsync")(syncing(os.fsync))
way(name="fdatasync")(syncing(os.fdatasync))
way(name="sync")(syncing(lambda _: os.sync()))
way(name="syncfs")(syncing(lambda fd: check(libc.syncfs(fd))))
way(name="sync_file_range")(syncing(lambda fd: check(libc.sync_file_range(fd, ctypes.c_long(0), ctypes.c_long(0), 7))))
way(name="checkpoint")(syncing(lambda fd: fcntl.ioctl(fd, EXT4_IOC_CHECKPOINT, struct.pack("I", 0))))


@way()
def freeze():
    fd, root = new(), os.open(".", os.O_RDONLY)
    while True:
        os.write(fd, b"x" * SIZE)
        yield
        fcntl.ioctl(root, FIFREEZE, 0)
        fcntl.ioctl(root, FITHAW, 0)


@way(ahead=1)
def msync():
    fd = full()
    memory = mmap.mmap(fd, SIZE)
    for i in range(1 << 30):
        yield
        memory[0] = i & 255
        memory.flush()


@way(asks=0, ahead=1)
def msync_async():
    fd = full()
    memory = mmap.mmap(fd, SIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for i in range(1 << 30):
        yield
        memory[0] = i & 255
        check(libc.msync(ctypes.c_void_p(address), SIZE, 1))


def writing(flags, write, make=new, before=lambda: None):
    def rounds():
        before()
        fd = make(flags)
        for i in range(1 << 30):
            yield
            write(fd, i)

    return rounds


def append(fd, _):
    os.write(fd, b"x" * 100)


def overwrite(fd, i):
    os.pwrite(fd, b"x" * 4096, i % 64 * 4096)


def directly(fd, i):
    os.pwritev(fd, [aligned()], i * SIZE)


way(name="o_sync")(writing(os.O_SYNC, append))
way(name="o_dsync")(writing(os.O_DSYNC, append))
way(name="o_dsync_overwrite", ahead=1)(writing(os.O_DSYNC, overwrite, full))
way(name="o_dsync_direct")(writing(os.O_DSYNC | os.O_DIRECT, directly))
way(name="o_dsync_direct_overwrite", ahead=1)(writing(os.O_DSYNC | os.O_DIRECT, directly, full))
way(name="writev")(writing(os.O_SYNC, lambda fd, _: os.writev(fd, [b"x" * 50, b"y" * 50])))
way(name="rwf_dsync")(writing(0, lambda fd, i: os.pwritev(fd, [b"x" * 100], i * 100, RWF_DSYNC)))
way(name="rwf_sync")(writing(0, lambda fd, i: os.pwritev(fd, [b"x" * 100], i * 100, RWF_SYNC)))
way(name="mount_sync", mount="sync", ahead=1)(writing(0, append))
way(name="fallocate")(writing(os.O_SYNC, lambda fd, i: os.posix_fallocate(fd, i * SIZE, SIZE)))
way(name="ftruncate", asks=0)(writing(os.O_SYNC, lambda fd, i: os.ftruncate(fd, i * 100)))


@way()
def chattr_s():
    fd = new()
    flagged("file", FS_EXTENT_FL | FS_SYNC_FL)
    while True:
        yield
        append(fd, 0)


def source():
    fd = new(name="source")
    os.write(fd, b"z" * SIZE)
    return fd


@way()
def sendfile():
    other, fd = source(), new(os.O_SYNC)
    while True:
        yield
        os.sendfile(fd, other, 0, 100)


@way()
def splice():
    fd, (reading, written) = new(os.O_SYNC), os.pipe()
    while True:
        yield
        os.write(written, b"x" * 100)
        os.splice(reading, fd, 100)


@way()
def copy_file_range():
    other, fd = source(), new(os.O_SYNC)
    for i in range(1 << 30):
        yield
        os.copy_file_range(other, fd, 100, 0, i * 100)


def naming(call):
    def rounds():
        for i in range(1 << 30):
            yield
            call(i)

    return rounds


def create(i):
    os.close(os.open(f"f{i}", os.O_WRONLY | os.O_CREAT))


way(name="dirsync_create", mount="dirsync")(naming(create))
way(name="dirsync_mkdir", mount="dirsync")(naming(lambda i: os.mkdir(f"d{i}")))
way(name="dirsync_symlink", mount="dirsync")(naming(lambda i: os.symlink("to", f"s{i}")))


@way(mount="dirsync", ahead=2)
def dirsync_rename():
    create(0)
    os.sync()
    for i in range(1 << 30):
        yield
        os.rename(f"f{i}", f"f{i + 1}")


@way()
def chattr_d():
    os.mkdir("folder")
    flagged("folder", FS_EXTENT_FL | FS_DIRSYNC_FL)
    for i in range(1 << 30):
        yield
        os.mkdir(f"folder/{i}")


class Aio:
    def __init__(self):
        self.context = ctypes.c_ulong(0)
        check(libc.syscall(IO_SETUP, 8, ctypes.byref(self.context)))

    def ask(self, opcode, fd, buffer=0, length=0, offset=0, flags=0):
        iocb = ctypes.create_string_buffer(
            struct.pack("QIiHhIQQqQII", 1, 0, flags, opcode, 0, fd, buffer, length, offset, 0, 0, 0), 64
        )
        list = (ctypes.c_void_p * 1)(ctypes.addressof(iocb))
        check(libc.syscall(IO_SUBMIT, self.context, ctypes.c_long(1), list))
        event = ctypes.create_string_buffer(32)
        check(libc.syscall(IO_GETEVENTS, self.context, ctypes.c_long(1), ctypes.c_long(1), event, None))
        check(struct.unpack("QQqq", event)[2])


def of_aio(ask, flags=0, make=new, write=True):
    def rounds():
        aio, fd, memory = Aio(), make(flags), aligned()
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for i in range(1 << 30):
            if write:
                append(fd, i)
            yield
            ask(aio, fd, address, i)

    return rounds


way(name="aio_fsync")(of_aio(lambda aio, fd, *_: aio.ask(FSYNC, fd)))
way(name="aio_fdsync")(of_aio(lambda aio, fd, *_: aio.ask(FDSYNC, fd)))
way(name="aio_o_dsync")(of_aio(lambda aio, fd, at, i: aio.ask(PWRITE, fd, at, 100, i * 100), os.O_DSYNC, write=False))
way(name="aio_rwf_dsync")(
    of_aio(lambda aio, fd, at, i: aio.ask(PWRITE, fd, at, 100, i * 100, RWF_DSYNC), write=False)
)
way(name="aio_direct")(
    of_aio(lambda aio, fd, at, i: aio.ask(PWRITE, fd, at, SIZE, i * SIZE), os.O_DSYNC | os.O_DIRECT, write=False)
)


def of_ring(ask, flags=0, make=new, write=True):
    def rounds():
        ring, fd, memory = requests.Ring(), make(flags), aligned()
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for i in range(1 << 30):
            if write:
                append(fd, i)
            yield
            check(ask(ring, fd, address, i))

    return rounds


way(name="uring_fsync")(of_ring(lambda ring, fd, *_: ring.one(requests.FSYNC, fd)))
way(name="uring_fdatasync")(of_ring(lambda ring, fd, *_: ring.one(requests.FSYNC, fd, op_flags=1)))
way(name="uring_sync_file_range")(
    of_ring(lambda ring, fd, *_: ring.one(requests.SYNC_FILE_RANGE, fd, 0, 0, 8192, 7))
)
way(name="uring_o_dsync")(
    of_ring(lambda ring, fd, at, i: ring.one(requests.WRITE, fd, i * 100, at, 100), os.O_DSYNC, write=False)
)
way(name="uring_rwf_dsync")(
    of_ring(lambda ring, fd, at, i: ring.one(requests.WRITE, fd, i * 100, at, 100, op_flags=RWF_DSYNC), write=False)
)
way(name="uring_direct")(
    of_ring(
        lambda ring, fd, at, i: ring.one(requests.WRITE, fd, i * SIZE, at, SIZE), os.O_DSYNC | os.O_DIRECT, write=False
    )
)
way(name="uring_fallocate")(
    of_ring(lambda ring, fd, at, i: ring.one(requests.FALLOCATE, fd, i * SIZE, SIZE, 0), os.O_SYNC, write=False)
)


def main(name=None, rounds=0):
    if not name:
        for name, (mount, asks, ahead, _) in WAYS.items():
            print(name, mount, asks, ahead, sep="|")
        return
    each = WAYS[name][3]()
    for _ in range(int(rounds) + 1):
        next(each)


main(*sys.argv[1:])
