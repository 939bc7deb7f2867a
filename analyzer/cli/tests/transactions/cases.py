#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Transactions of many kinds, each kind in a process and a folder of its own.

Says of each what SQLite's own hooks counted in the writing processes:
    {"case": [[pid, ...], commits], ...}

    cases.py FOLDER TRUTH.json [CASE ...]
"""
import ctypes
import ctypes.util
import json
import os
import shutil
import sys
import threading
import time

sqlite = ctypes.CDLL("libsqlite3.so.0")
sqlite.sqlite3_errmsg.restype = ctypes.c_char_p
sqlite.sqlite3_commit_hook.restype = ctypes.c_void_p
sqlite.sqlite3_backup_init.restype = ctypes.c_void_p
COMMIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
READ_WRITE_CREATE_URI = 0x2 | 0x4 | 0x40

# Commits of this process. VACUUM commits without the hook, so that it is added by hand.
commits = 0


@COMMIT
def on_commit(_):
    global commits
    commits += 1
    return 0


class Db:
    """A connection whose commits are counted."""

    def __init__(self, name, *pragmas):
        self.db = ctypes.c_void_p()
        uri = name if name.startswith("file:") else "file:" + name
        code = sqlite.sqlite3_open_v2(uri.encode(), ctypes.byref(self.db), READ_WRITE_CREATE_URI, None)
        assert code == 0, (name, code)
        sqlite.sqlite3_busy_timeout(self.db, 20000)
        sqlite.sqlite3_commit_hook(self.db, on_commit, None)
        for pragma in pragmas:
            self("PRAGMA " + pragma)

    def __call__(self, sql, may_fail=False):
        code = sqlite.sqlite3_exec(self.db, sql.encode(), None, None, None)
        assert code == 0 or may_fail, (sql, sqlite.sqlite3_errmsg(self.db))
        return code

    def close(self):
        assert sqlite.sqlite3_close(self.db) == 0


def add(n):
    global commits
    commits += n


def vacuum(db, sql="VACUUM"):
    before = commits
    db(sql)
    add(1 - (commits - before))


def insert(db, table="t", size=100):
    db(f"INSERT INTO {table}(b) VALUES (zeroblob({size}))")


def basic(*pragmas, n=8, name="a.db", size=100):
    db = Db(name, *pragmas)
    db("CREATE TABLE t(i INTEGER PRIMARY KEY, b BLOB)")
    for _ in range(n):
        insert(db, size=size)
    db("UPDATE t SET b = zeroblob(50)")
    db("DELETE FROM t WHERE i < 4")
    db.close()


def attached(journal, sync, *others, n=6):
    db = Db("a.db", f"journal_mode={journal}", f"synchronous={sync}")
    db("CREATE TABLE t(b)")
    for at, mode in enumerate(others):
        db(f"ATTACH 'b{at}.db' AS b{at}")
        db(f"PRAGMA b{at}.journal_mode={mode}")
        db(f"PRAGMA b{at}.synchronous={sync}")
        db(f"CREATE TABLE b{at}.t{at}(b)")
    for _ in range(n):
        db("BEGIN")
        insert(db)
        for at in range(len(others)):
            insert(db, f"b{at}.t{at}")
        db("COMMIT")
    insert(db)
    db.close()


def large(db, end, times, pages=60):
    for _ in range(times):
        db("BEGIN")
        for _ in range(pages):
            insert(db, size=3000)
        db("UPDATE t SET b = zeroblob(2900)")
        db(end)


def spill(end, times, *pragmas):
    db = Db("a.db", "cache_size=5", "cache_spill=5", *pragmas)
    db("CREATE TABLE t(i INTEGER PRIMARY KEY, b BLOB)")
    insert(db)
    large(db, end, times)
    if "locking_mode=exclusive" not in pragmas:
        insert(db)
    db.close()


def rollback(*pragmas):
    db = Db("a.db", *pragmas)
    db("CREATE TABLE t(b)")
    for _ in range(5):
        db("BEGIN")
        insert(db)
        db("ROLLBACK")
        insert(db)
    db.close()


def savepoints(*pragmas, spills=False):
    db = Db("a.db", *pragmas)
    if spills:
        db("PRAGMA cache_size=5")
    db("CREATE TABLE t(b)")
    size = 3000 if spills else 100
    for _ in range(4):
        db("SAVEPOINT one")
        for _ in range(20):
            insert(db, size=size)
        db("SAVEPOINT two")
        for _ in range(20):
            insert(db, size=size)
        db("ROLLBACK TO two")
        insert(db)
        db("RELEASE one")
    db("SAVEPOINT three")
    insert(db)
    db("ROLLBACK TO three")
    db("RELEASE three")
    db.close()


def vacuums(*pragmas, auto=None):
    db = Db("a.db")
    if auto:
        db(f"PRAGMA auto_vacuum={auto}")
    for pragma in pragmas:
        db("PRAGMA " + pragma)
    db("CREATE TABLE t(i INTEGER PRIMARY KEY, b BLOB)")
    for _ in range(3):
        for _ in range(3):
            insert(db, size=20000)
        db("DELETE FROM t WHERE i > 1")
        if auto == "incremental":
            db("PRAGMA incremental_vacuum")
        elif not auto:
            vacuum(db)
    db.close()


def children(count, work):
    """Runs them at once; their commits are told through a pipe."""
    read, write = os.pipe()
    pids = []
    for nth in range(count):
        pid = os.fork()
        if pid == 0:
            global commits
            commits = 0
            work(nth)
            os.write(write, b"%d\n" % commits)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    os.close(write)
    for line in os.fdopen(read):
        add(int(line))
    return pids


def together(*pragmas):
    basic(*pragmas)

    def work(_):
        db = Db("a.db", *pragmas)
        for _ in range(6):
            insert(db)
        db.close()

    return children(3, work)


def killed(*pragmas, after="UPDATE t SET b = zeroblob(2900)"):
    """A process dies within a transaction that has reached the database; the next one rolls it back."""
    db = Db("a.db", *pragmas)
    db("CREATE TABLE t(i INTEGER PRIMARY KEY, b BLOB)")
    for _ in range(30):
        insert(db, size=3000)
    db.close()
    pid = os.fork()
    if pid == 0:
        db = Db("a.db", "cache_size=5", *pragmas)
        db("BEGIN")
        db(after)
        os._exit(0)
    os.waitpid(pid, 0)

    def work(_):
        db = Db("a.db", *pragmas)
        insert(db)
        insert(db)
        db.close()

    return [pid] + children(1, work)


def beside_sync():
    stop = threading.Event()

    def syncs():
        while not stop.is_set():
            os.sync()
            time.sleep(0.01)

    thread = threading.Thread(target=syncs)
    thread.start()
    basic("journal_mode=delete", "synchronous=off", n=100)
    stop.set()
    thread.join()


def modes():
    db = Db("a.db", "journal_mode=delete")
    db("CREATE TABLE t(b)")
    for mode in ["wal", "delete", "truncate", "wal", "persist", "delete"]:
        db("PRAGMA journal_mode=" + mode)
        insert(db)
        insert(db)
    db.close()


def memory_after_wal():
    db = Db("a.db", "journal_mode=wal")
    db("CREATE TABLE t(b)")
    db("PRAGMA journal_mode=memory")
    for _ in range(5):
        insert(db)
    db.close()


def slow(*pragmas):
    """For more than two seconds: a cut comes within a transaction, or between two."""
    db = Db("a.db", *pragmas)
    db("CREATE TABLE t(b)")
    for _ in range(50):
        db("BEGIN")
        insert(db)
        time.sleep(0.05)
        db("COMMIT")
    db.close()


def locking_changes():
    db = Db("a.db", "journal_mode=delete")
    db("CREATE TABLE t(b)")
    insert(db)
    db("PRAGMA locking_mode=exclusive")
    for _ in range(4):
        insert(db)
    db("PRAGMA locking_mode=normal")
    for _ in range(4):
        insert(db)
    db.close()


def two(*pragmas, threads=False):
    def work(name):
        db = Db(name, *pragmas)
        db("CREATE TABLE t(b)")
        for _ in range(6):
            insert(db)
        db.close()

    if threads:
        both = [threading.Thread(target=work, args=(name,)) for name in ["a.db", "b.db"]]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        return
    one, other = Db("a.db", *pragmas), Db("b.db", *pragmas)
    for db in [one, other]:
        db("CREATE TABLE t(b)")
    for _ in range(6):
        insert(one)
        insert(other)
    one.close()
    other.close()


def overlapping(*pragmas):
    """Two connections of a thread, the one within a transaction of the other."""
    one, other = Db("a.db", "cache_size=5", *pragmas), Db("b.db", "cache_size=5", *pragmas)
    for db in [one, other]:
        db("CREATE TABLE t(i INTEGER PRIMARY KEY, b BLOB)")
    for _ in range(4):
        one("BEGIN")
        for _ in range(30):
            insert(one, size=3000)
        insert(other)
        one("COMMIT")
    one.close()
    other.close()


def temporary():
    os.mkdir("tmp")
    os.environ["SQLITE_TMPDIR"] = os.path.abspath("tmp")
    db = Db("a.db", "temp_store=file", "cache_size=5", "temp.cache_size=5")
    db("CREATE TABLE t(b)")
    insert(db)
    before = commits
    db("CREATE TEMP TABLE s(i INTEGER PRIMARY KEY, b BLOB)")
    for _ in range(60):
        insert(db, "s", size=3000)
    # What is temporary is no database's.
    add(before - commits)
    insert(db)
    db.close()


def vacuum_into():
    basic()
    db = Db("a.db")
    vacuum(db, "VACUUM INTO 'b.db'")
    db.close()


def backup():
    basic()
    one, other = Db("a.db"), Db("b.db")
    handle = ctypes.c_void_p(sqlite.sqlite3_backup_init(other.db, b"main", one.db, b"main"))
    assert sqlite.sqlite3_backup_step(handle, -1) == 101
    assert sqlite.sqlite3_backup_finish(handle) == 0
    add(1)
    one.close()
    other.close()


def copied():
    basic()
    shutil.copy("a.db", "b.db")
    with open("a.db", "rb") as one, open("c.db", "wb") as other:
        other.write(one.read())


def checkpoints(mode):
    db = Db("a.db", "journal_mode=wal", "wal_autocheckpoint=0")
    db("CREATE TABLE t(b)")
    for _ in range(4):
        for _ in range(3):
            insert(db)
        db(f"PRAGMA wal_checkpoint({mode})")
    db.close()


def others_checkpoint():
    basic("journal_mode=wal")
    db = Db("a.db", "wal_autocheckpoint=0")

    def work(_):
        other = Db("a.db")
        other("PRAGMA wal_checkpoint(truncate)")
        other.close()

    pids = []
    for _ in range(3):
        insert(db)
        insert(db)
        pids += children(1, work)
    db.close()
    return pids


def fails():
    db = Db("a.db")
    db("CREATE TABLE t(i INTEGER PRIMARY KEY, b UNIQUE)")
    db("INSERT INTO t VALUES (1, 1)")
    for _ in range(3):
        assert db("INSERT INTO t VALUES (2, 2), (3, 1)", may_fail=True)
    db("INSERT INTO t VALUES (4, 4)")
    db.close()


def renamed():
    basic(name="a.db")
    os.rename("a.db", "b.db")
    db = Db("b.db")
    for _ in range(3):
        insert(db)
    db.close()


def notes(sizes):
    for _ in range(20):
        for name in ["notes-journal", "notes"]:
            with open(name, "wb", buffering=0) as file:
                for size in sizes:
                    file.write(b"this is a note, " * (size // 16) + b"." * (size % 16))
                os.fsync(file.fileno())
        os.unlink("notes-journal")


def strangers_wal():
    with open("log-wal", "wb", buffering=0) as file:
        for at in range(50):
            file.write(bytes(range(24)))
            file.write(b"x" * 4000)
            os.fdatasync(file.fileno())


def strangers_db():
    with open("x.db", "wb", buffering=0) as file:
        for at in range(20):
            os.pwrite(file.fileno(), b"y" * 4096, at * 4096)
            os.fdatasync(file.fileno())


def plain():
    for at in range(20):
        with open(f"f{at}.tmp", "wb") as file:
            file.write(b"z" * 5000)
            file.flush()
            os.fsync(file.fileno())
        os.rename(f"f{at}.tmp", f"f{at}")


def lmdb():
    lib = ctypes.CDLL("liblmdb.so.0")
    env = ctypes.c_void_p()
    assert lib.mdb_env_create(ctypes.byref(env)) == 0
    os.mkdir("store.db")
    assert lib.mdb_env_open(env, b"store.db", 0, 0o644) == 0

    class Value(ctypes.Structure):
        _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_char_p)]

    for at in range(20):
        txn, dbi = ctypes.c_void_p(), ctypes.c_uint()
        assert lib.mdb_txn_begin(env, None, 0, ctypes.byref(txn)) == 0
        assert lib.mdb_dbi_open(txn, None, 0, ctypes.byref(dbi)) == 0
        key, value = b"%d" % at, b"v" * 500
        assert lib.mdb_put(txn, dbi, ctypes.byref(Value(len(key), key)), ctypes.byref(Value(500, value)), 0) == 0
        assert lib.mdb_txn_commit(txn) == 0
    lib.mdb_env_close(env)


def rocksdb():
    lib = ctypes.CDLL(ctypes.util.find_library("rocksdb"))
    for name in ["rocksdb_options_create", "rocksdb_open", "rocksdb_writeoptions_create"]:
        getattr(lib, name).restype = ctypes.c_void_p
    options = ctypes.c_void_p(lib.rocksdb_options_create())
    lib.rocksdb_options_set_create_if_missing(options, 1)
    error = ctypes.c_char_p()
    db = ctypes.c_void_p(lib.rocksdb_open(options, b"rocks.db", ctypes.byref(error)))
    assert not error, error
    write = ctypes.c_void_p(lib.rocksdb_writeoptions_create())
    lib.rocksdb_writeoptions_set_sync(write, 1)
    for at in range(20):
        key = b"%d" % at
        size = ctypes.c_size_t
        lib.rocksdb_put(db, write, key, size(len(key)), b"v" * 500, size(500), ctypes.byref(error))
        assert not error, error
    lib.rocksdb_close(db)


def has(library):
    return bool(ctypes.util.find_library(library))


def every_case():
    cases = {}
    for journal in ["delete", "truncate", "persist"]:
        for sync in ["off", "normal", "full", "extra"]:
            cases[f"{journal}, {sync}"] = lambda j=journal, s=sync: basic(f"journal_mode={j}", f"synchronous={s}")
    for size in [512, 4096]:
        for sync in ["off", "normal", "full"]:
            cases[f"wal, {sync}, pages of {size}"] = lambda p=size, s=sync: basic(
                f"page_size={p}", "journal_mode=wal", f"synchronous={s}"
            )
    for journal in ["memory", "off"]:
        for sync in ["off", "full"]:
            cases[f"{journal}, {sync}"] = lambda j=journal, s=sync: basic(f"journal_mode={j}", f"synchronous={s}")
    for journal in ["delete", "truncate", "persist", "wal", "memory"]:
        cases[f"exclusive, {journal}"] = lambda j=journal: basic("locking_mode=exclusive", f"journal_mode={j}")
        cases[f"exclusive, {journal}, off"] = lambda j=journal: basic(
            "locking_mode=exclusive", f"journal_mode={j}", "synchronous=off"
        )
    for journal in ["delete", "wal"]:
        cases[f"mmap, {journal}"] = lambda j=journal: basic("mmap_size=1000000", f"journal_mode={j}")
        for size in [512, 1024, 65536]:
            cases[f"{journal}, rows beyond pages of {size}"] = lambda j=journal, p=size: basic(
                f"page_size={p}", f"journal_mode={j}", size=9000
            )
    for journal in ["delete", "truncate", "persist", "wal", "memory"]:
        cases[f"attached, {journal}"] = lambda j=journal: attached(j, "full", j)
    cases["attached, delete, off"] = lambda: attached("delete", "off", "delete")
    cases["attached, wal and delete"] = lambda: attached("wal", "full", "delete")
    cases["attached, delete and wal"] = lambda: attached("delete", "full", "wal")
    cases["attached, three of delete"] = lambda: attached("delete", "full", "delete", "delete")
    cases["attached, delete and truncate, normal"] = lambda: attached("delete", "normal", "truncate")
    for journal in ["delete", "persist", "wal"]:
        cases[f"savepoints, {journal}"] = lambda j=journal: savepoints(f"journal_mode={j}")
        cases[f"savepoints that spill, {journal}"] = lambda j=journal: savepoints(f"journal_mode={j}", spills=True)
        cases[f"rolled back, {journal}"] = lambda j=journal: rollback(f"journal_mode={j}")
        cases[f"vacuum, {journal}"] = lambda j=journal: vacuums(f"journal_mode={j}")
        cases[f"auto_vacuum, {journal}"] = lambda j=journal: vacuums(f"journal_mode={j}", auto="full")
    cases["incremental vacuum, delete"] = lambda: vacuums("journal_mode=delete", auto="incremental")
    for journal in ["delete", "truncate", "persist", "wal", "memory"]:
        mode = f"journal_mode={journal}"
        cases[f"spilled, {journal}"] = lambda m=mode: spill("COMMIT", 4, m)
        cases[f"spilled, rolled back, {journal}"] = lambda m=mode: spill("ROLLBACK", 20, m)
    for journal in ["delete", "truncate", "wal"]:
        mode = f"journal_mode={journal}"
        cases[f"spilled, exclusive, {journal}"] = lambda m=mode: spill("COMMIT", 4, "locking_mode=exclusive", m)
        cases[f"spilled, rolled back, exclusive, {journal}"] = lambda m=mode: spill(
            "ROLLBACK", 4, "locking_mode=exclusive", m
        )
    cases["spilled, rolled back, delete, off"] = lambda: spill(
        "ROLLBACK", 4, "journal_mode=delete", "synchronous=off"
    )
    for journal in ["delete", "truncate", "wal"]:
        cases[f"four processes, {journal}"] = lambda j=journal: together(f"journal_mode={j}")
    cases["killed, delete"] = lambda: killed("journal_mode=delete")
    cases["killed, persist"] = lambda: killed("journal_mode=persist")
    cases["killed, wal"] = lambda: killed("journal_mode=wal")
    for size in [512, 1024, 4096]:
        cases[f"torn sectors, wal, full, pages of {size}"] = lambda p=size: basic(
            f"page_size={p}", "journal_mode=wal", "synchronous=full", name="a.db?psow=0", n=40
        )
    cases["torn sectors, wal, full, long"] = lambda: basic(
        "journal_mode=wal", "synchronous=full", "wal_autocheckpoint=0", name="a.db?psow=0", n=300
    )
    cases["torn sectors, wal, normal"] = lambda: basic(
        "journal_mode=wal", "synchronous=normal", name="a.db?psow=0", n=20
    )
    cases["torn sectors, delete, full"] = lambda: basic("journal_mode=delete", name="a.db?psow=0")
    cases["delete, off, beside sync()"] = beside_sync
    cases["slow, delete, off"] = lambda: slow("journal_mode=delete", "synchronous=off")
    cases["slow, wal"] = lambda: slow("journal_mode=wal")
    cases["journal modes that change"] = modes
    cases["memory after wal"] = memory_after_wal
    cases["locking modes that change"] = locking_changes
    cases["two databases, delete"] = lambda: two("journal_mode=delete")
    cases["two databases, delete, off"] = lambda: two("journal_mode=delete", "synchronous=off")
    cases["two databases, wal"] = lambda: two("journal_mode=wal")
    cases["two databases, wal, two threads"] = lambda: two("journal_mode=wal", threads=True)
    cases["two connections, one within the other"] = lambda: overlapping("journal_mode=delete")
    cases["temporary tables"] = temporary
    cases["vacuum into"] = vacuum_into
    cases["backup"] = backup
    cases["copied"] = copied
    for mode in ["passive", "restart", "truncate"]:
        cases[f"checkpoints, {mode}"] = lambda m=mode: checkpoints(m)
    cases["another process's checkpoints"] = others_checkpoint
    cases["statements that fail"] = fails
    cases["renamed"] = renamed
    cases["a name without an ending, delete"] = lambda: basic(name="notes")
    cases["a name without an ending, memory"] = lambda: basic("journal_mode=memory", name="notes")
    cases["a name without an ending, wal"] = lambda: basic("journal_mode=wal", name="notes")
    cases["persist, no limit"] = lambda: basic("journal_mode=persist", "journal_size_limit=0")
    cases["persist, limit"] = lambda: basic("journal_mode=persist", "journal_size_limit=600", size=9000)
    cases["no SQLite: notes and notes-journal"] = lambda: notes([100])
    cases["no SQLite: long notes"] = lambda: notes([4096, 24, 4096])
    cases["no SQLite: log-wal"] = strangers_wal
    cases["no SQLite: x.db"] = strangers_db
    cases["no SQLite: plain files"] = plain
    if has("lmdb"):
        cases["no SQLite: LMDB"] = lmdb
    if has("rocksdb"):
        cases["no SQLite: RocksDB"] = rocksdb
    return cases


def run(nth, case, folder):
    """In a process and a folder of its own; returns its processes and their commits."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        place = os.path.join(folder, f"{nth:03}")
        os.mkdir(place)
        os.chdir(place)
        pids = case() or []
        os.write(write, json.dumps([[os.getpid()] + pids, commits]).encode())
        os._exit(0)
    os.close(write)
    text = os.fdopen(read).read()
    _, status = os.waitpid(pid, 0)
    return json.loads(text) if status == 0 and text else None


def main():
    folder, truth, *wanted = sys.argv[1:]
    found = {}
    for nth, (name, case) in enumerate(every_case().items()):
        if not wanted or name in wanted:
            found[name] = run(nth, case, folder)
            assert found[name], name
    with open(truth, "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
