# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes files into the working directory from threads that have other names than their processes. Each file is named after what its
process is called when it is written, NAME@PID.NUMBER."""

import ctypes
import itertools
import os
import platform
import sys
import threading
import time

LIBC = ctypes.CDLL(None)
PR_SET_NAME = 15
SYS_EXIT = 93 if platform.machine() in ("aarch64", "riscv64") else 60
LAST_PID = "/proc/sys/kernel/ns_last_pid"
NUMBERS = itertools.count()


def rename(name):
    """Renames the calling thread."""
    LIBC.prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def write(name):
    """Writes a file while the process has this name."""
    with open(f"/proc/{os.getpid()}/comm", encoding="utf-8") as comm:
        called = comm.read().rstrip("\n")
    assert called == name, (called, name)
    file = os.open(f"{name}@{os.getpid()}.{next(NUMBERS)}", os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(file, b"x" * 65536)
    os.fsync(file)
    os.close(file)


def in_thread(name, work):
    """Does something in a thread of this name, and waits for it."""

    def run():
        rename(name)
        work()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def in_child(work):
    """Does something in a child, and returns its number."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return child


def fork_and_exec():
    """A child has the name of the thread that forked it, until it executes a program."""

    def work():
        write("forker")
        in_thread("helper", lambda: write("forker"))
        program = os.path.join(sys.argv[1], "executed")
        os.execv(program, [program, __file__, "executed"])

    in_child(work)


def outlive_the_main_thread():
    """A thread goes on after its process's main thread has ended."""

    def go_on():
        rename("survivor")
        stat = f"/proc/{os.getpid()}/task/{os.getpid()}/stat"
        while open(stat, encoding="utf-8").read().rsplit(")", 1)[1].split()[0] != "Z":
            time.sleep(0.01)
        write("ended")
        os._exit(0)

    rename("ended")
    threading.Thread(target=go_on).start()
    LIBC.syscall(SYS_EXIT, 0)


def use_a_number_again():
    """A process has the number of one that ended, and another name."""

    def work(name):
        rename(name)
        in_thread("helper", lambda: write(name))

    first = in_child(lambda: work("earlier"))
    for _ in range(300):
        with open(LAST_PID, "w", encoding="utf-8") as last:
            last.write(str(first - 1))
        if in_child(lambda: os.getpid() == first and work("later")) == first:
            return


def main():
    if sys.argv[1] == "executed":
        in_thread("helper", lambda: write("executed"))
        return
    rename("first")
    in_thread("helper", lambda: write("first"))
    rename("second")
    in_thread("helper", lambda: write("second"))
    write("second")
    in_thread("forker", fork_and_exec)
    in_child(outlive_the_main_thread)
    if os.path.exists(LAST_PID):
        use_a_number_again()


main()
