#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes a 32-bit program for ARM that calls getppid(1, …, 4096) a hundred times, and ends.

usage: call32.py FILE
Its number is 64 there, and that of write in 64-bit programs (arch/arm/tools/syscall.tbl, include/uapi/asm-generic/unistd.h).
"""
import os
import struct
import sys

BASE = 0x10000
CODE = (
    0xE3A04064,  # mov r4, #100
    0xE3A00001,  # mov r0, #1
    0xE3A01801,  # mov r1, #0x10000, which can be read
    0xE3A02A01,  # mov r2, #4096
    0xE3A07040,  # mov r7, #64
    0xEF000000,  # svc #0
    0xE2544001,  # subs r4, r4, #1
    0x1AFFFFF8,  # bne to the second instruction
    0xE3A00000,  # mov r0, #0
    0xE3A07001,  # mov r7, #1 (exit)
    0xEF000000,  # svc #0
)
EHDR, PHDR = struct.Struct("<16sHHIIIIIHHHHHH"), struct.Struct("<IIIIIIII")
SIZE = EHDR.size + PHDR.size + 4 * len(CODE)
IDENT = b"\x7fELF\x01\x01\x01"
EXEC, ARM, EABI5, LOAD, READ_EXECUTE = 2, 40, 0x5000000, 1, 5

with open(sys.argv[1], "wb") as program:
    entry = BASE + EHDR.size + PHDR.size
    program.write(EHDR.pack(IDENT, EXEC, ARM, 1, entry, EHDR.size, 0, EABI5, EHDR.size, PHDR.size, 1, 0, 0, 0))
    program.write(PHDR.pack(LOAD, 0, BASE, BASE, SIZE, SIZE, READ_EXECUTE, 0x10000))
    program.write(struct.pack(f"<{len(CODE)}I", *CODE))
os.chmod(sys.argv[1], 0o755)
