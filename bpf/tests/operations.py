#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes each kind of call, and reads what strace saw of it.

operations.py make FOLDER OTHER WRITES   FOLDER is the root of a filesystem, OTHER a folder of another one. The place of
                                         each write goes to the file WRITES: `offset bytes`
operations.py told LOG FOLDER            prints the calls on FOLDER in a log of `strace -f -y`: `kind|path|other|result`
"""

import ctypes
import os
import re
import sys

libc = ctypes.CDLL(None, use_errno=True)


def refused(call, *args, **named):
    try:
        call(*args, **named)
    except OSError:
        return
    raise AssertionError(f"{call} {args} was expected to fail")


class Writes:
    def __init__(self, path):
        self.out = open(path, "w", encoding="ascii")

    def write(self, fd, data):
        print(os.lseek(fd, 0, os.SEEK_CUR), len(data), file=self.out, flush=True)
        os.write(fd, data)

    def at(self, fd, data, offset):
        print(offset, len(data), file=self.out, flush=True)
        os.pwrite(fd, data, offset)


def write_files(writes, other):
    f = os.open("d/a", os.O_RDWR | os.O_CREAT, 0o640)
    writes.write(f, b"x" * 5000)
    writes.at(f, b"y" * 50, 4096)
    writes.write(f, b"z" * 3)
    os.lseek(f, 20000, os.SEEK_SET)
    writes.write(f, b"z" * 9)
    os.ftruncate(f, 9000)
    os.truncate("d/a", 8000)
    os.posix_fallocate(f, 0, 30000)
    libc.sync_file_range(f, ctypes.c_long(0), ctypes.c_long(4096), 7)
    os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
    os.fsync(f)
    os.fdatasync(f)
    libc.syncfs(f)
    os.sync()
    g = os.dup(f)
    writes.write(g, b"duplicated")
    os.close(f)
    writes.write(g, b"still open")
    if os.fork() == 0:
        writes.write(g, b"inherited")
        os._exit(0)
    os.wait()
    # The descriptor is replaced, and the file closed.
    os.dup2(other, g)
    os.close(g)
    source = os.open("d/a", os.O_RDONLY)
    refused(os.write, source, b"?")
    target = os.open(b"d/copy", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.copy_file_range(source, target, 1000, 16, 4096)
    os.sendfile(target, source, 100, 500)
    os.close(target)
    os.close(source)
    appended = os.open("d/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(3):
        os.write(appended, b"line\n")
    os.pwrite(appended, b"anywhere", 1)
    os.close(appended)
    nameless = os.open("d", os.O_TMPFILE | os.O_RDWR)
    writes.write(nameless, b"nameless")
    # AT_EMPTY_PATH
    libc.linkat(nameless, b"", -100, b"d/named later", 0x1000)
    os.close(nameless)


# The pages that are stored to; a page that is dirty already is not seen again until it was written.
STORES = [[3, 4, 17, 4], [17, 39]]


def store_to_mapping():
    """The mapping outlives its descriptor."""
    f = os.open("d/stored", os.O_RDWR | os.O_CREAT)
    os.ftruncate(f, 40 * 4096)
    libc.mmap.restype = ctypes.c_void_p
    nothing, both, shared, synced = ctypes.c_void_p(0), 3, 1, 4
    memory = libc.mmap(nothing, ctypes.c_size_t(40 * 4096), both, shared, f, ctypes.c_long(0))
    os.close(f)
    for pages in STORES:
        for page in pages:
            ctypes.memset(memory + page * 4096 + 100, 1, 10)
        libc.msync(ctypes.c_void_p(memory + 2 * 4096), ctypes.c_size_t(38 * 4096), synced)


def leave_files_open():
    """One has only a mapping left when it is closed, as git's objects have; the other ends with the process."""
    mapped = os.open("d/mapped", os.O_RDWR | os.O_CREAT)
    os.ftruncate(mapped, 4096)
    libc.mmap.restype = ctypes.c_void_p
    nothing, private = ctypes.c_void_p(0), 2
    for _ in range(3):
        libc.mmap(nothing, ctypes.c_size_t(4096), 1, private, mapped, ctypes.c_long(0))
    os.close(mapped)
    os.unlink("d/mapped")
    os.open("d/left", os.O_RDWR | os.O_CREAT)


def change_names(root, other):
    d = os.open("d", os.O_RDONLY | os.O_DIRECTORY)
    os.mkdir("sub", dir_fd=d)
    os.close(os.open("sub/x", os.O_CREAT | os.O_WRONLY, dir_fd=d))
    os.rename("sub/x", "y", src_dir_fd=d, dst_dir_fd=d)
    os.rename("d/y", f"{root}//d/./sub/../z")
    os.link("d/z", "hard")
    os.link("d/z", "harder", dst_dir_fd=d)
    os.symlink("d/sub", "soft")
    os.symlink("/nowhere at all", "dangling", dir_fd=d)
    os.close(os.open("soft/through", os.O_CREAT | os.O_WRONLY))
    os.mkfifo("pipe")
    os.unlink("hard")
    os.unlink("harder", dir_fd=d)
    refused(os.rmdir, "sub", dir_fd=d)
    os.unlink("soft/through")
    os.rmdir("sub", dir_fd=d)
    os.mkdir(f"{root}/absolute")
    os.rmdir("absolute")
    refused(os.open, "missing", os.O_RDWR)
    refused(os.open, f"{root}/d/z", os.O_CREAT | os.O_EXCL)
    refused(os.unlink, "d/missing")
    refused(os.mkdir, "d")
    refused(os.rename, "missing", "anything")
    # To and from another filesystem: refused, and no change of either.
    refused(os.rename, "d/z", f"{other}/z")
    os.close(d)
    os.chdir(other)
    os.mkdir("elsewhere")
    os.rmdir("elsewhere")
    os.chdir(root)
    os.chdir("d")
    os.mkdir("../up")
    os.rmdir("../up")
    os.chdir(root)


def change_attributes():
    f = os.open("d/a", os.O_RDWR)
    os.chmod("d/a", 0o600)
    os.chmod(f, 0o644)
    os.chown("d/a", 1, -1)
    os.chown(f, -1, 2)
    os.chown("soft", 3, 3, follow_symlinks=False)
    os.utime("d/a", (1, 2))
    os.utime(f, (3, 4))
    os.setxattr("d/a", "user.one", b"12345")
    os.setxattr(f, "user.two", b"123")
    os.removexattr("d/a", "user.one")
    refused(os.removexattr, f, "user.three")
    os.close(f)


def make(root, other, writes):
    os.chdir(root)
    os.mkdir("d")
    out = os.open(f"{other}/out", os.O_WRONLY | os.O_CREAT)
    os.write(out, b"not there")
    write_files(Writes(writes), out)
    change_names(root, other)
    change_attributes()
    leave_files_open()
    store_to_mapping()
    os.fsync(out)
    os.close(out)


KINDS = {
    "openat": "open",
    "write": "write",
    "pwrite64": "write",
    "truncate": "truncate",
    "ftruncate": "truncate",
    "fallocate": "fallocate",
    "fsync": "fsync",
    "fdatasync": "fdatasync",
    "sync_file_range": "sync_range",
    "fadvise64": "fadvise",
    "sync": "sync",
    "syncfs": "syncfs",
    "rename": "rename",
    "renameat": "rename",
    "link": "link",
    "linkat": "link",
    "symlink": "symlink",
    "symlinkat": "symlink",
    "unlink": "unlink",
    "unlinkat": "unlink",
    "rmdir": "rmdir",
    "mkdir": "mkdir",
    "mkdirat": "mkdir",
    "mknod": "mknod",
    "mknodat": "mknod",
    "chmod": "chmod",
    "fchmod": "chmod",
    "chown": "chown",
    "lchown": "chown",
    "fchown": "chown",
    "utimensat": "utimes",
    "setxattr": "setxattr",
    "fsetxattr": "setxattr",
    "removexattr": "removexattr",
    "fremovexattr": "removexattr",
    "copy_file_range": "copy",
    "sendfile": "copy",
}
DESCRIPTOR = r"(-?\d+|AT_FDCWD)<([^>]*)>"


class Told:
    def __init__(self, root):
        self.root = root
        self.cwd = {}

    def below(self, path):
        """The path from the root of the filesystem, or None."""
        path = os.path.normpath(path.removesuffix(" (deleted)"))
        # A file without a name (O_TMPFILE) counts as its folder's.
        path = re.sub(r"/#\d+$", "", path)
        if path == self.root:
            return ""
        return path.removeprefix(self.root + "/") if path.startswith(self.root + "/") else None

    def paths(self, pid, args):
        """The paths of a call: each text behind the folder that stands before it."""
        found = []
        base = None
        for match in re.finditer(DESCRIPTOR + r'|"((?:[^"\\]|\\.)*)"', args):
            if match[2] is not None:
                base = match[2]
            else:
                found.append(self.below(os.path.join(base or self.cwd[pid], match[3])))
                base = None
        return found

    def line(self, pid, name, args, result):
        kind = KINDS[name]
        texts = re.findall(r'"((?:[^"\\]|\\.)*)"', args)
        files = [self.below(path) for _, path in re.findall(DESCRIPTOR, args)]
        value = int(result.split("<")[0].split(" ")[0])
        errno = re.search(r"= -1 (E\w+)", "= " + result)
        if errno:
            import errno as numbers

            value = -getattr(numbers, errno[1])
        path = other = ""
        if kind == "open":
            path = self.paths(pid, args)[0]
            if value >= 0:
                path = self.below(re.search(r"<(.*)>", result)[1])
                value = 0
        elif kind in ("rename", "link"):
            path, other = self.paths(pid, args)
        elif kind == "symlink":
            path, other = self.paths(pid, args)[-1], texts[0]
        elif kind == "sync":
            path = ""
        elif kind == "unlink" and "AT_REMOVEDIR" in args:
            kind, path = "rmdir", self.paths(pid, args)[0]
        elif kind == "copy":
            path = files[0] if name == "sendfile" else files[1]
        elif kind in ("setxattr", "removexattr"):
            path = files[0] if name[0] == "f" else self.paths(pid, args)[0]
            other = texts[-1] if kind == "removexattr" else texts[0 if name[0] == "f" else 1]
        elif kind == "utimes" and "NULL, [" in args:
            path = files[0]
        elif kind == "write" or name in ("fsync", "fdatasync", "syncfs", "sync_file_range", "fadvise64", "fallocate") or name[0] == "f":
            path = files[0]
        else:
            path = self.paths(pid, args)[0]
        if path is None or other is None:
            return None
        return f"{kind}|{path}|{other}|{value}"


def told(log, root):
    calls = Told(root)
    for line in open(log, encoding="utf-8"):
        match = re.match(r"(\d+) +(\w+)\((.*)\) += (.*)$", line)
        if not match:
            continue
        pid, name, args, result = match.groups()
        if name == "chdir" and result == "0":
            calls.cwd[pid] = os.path.join(calls.cwd.get(pid, "/"), re.search(r'"(.*)"', args)[1])
        elif name in KINDS and calls.cwd.get(pid, None) is not None or name in ("write",):
            calls.cwd.setdefault(pid, "/")
            said = calls.line(pid, name, args, result)
            if said is not None:
                print(said)


if __name__ == "__main__":
    {"make": make, "told": told}[sys.argv[1]](*sys.argv[2:])
