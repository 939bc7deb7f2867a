# SPDX-License-Identifier: MIT OR Apache-2.0
"""Inserts a hundred rows into an SQLite database, each in a transaction of its own."""

import sqlite3

db = sqlite3.connect("app.db")
db.execute("create table notes(text)")
for _ in range(100):
    db.execute("insert into notes values (?)", ("x" * 100,))
    db.commit()
