# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads the text of the kernel's own trace of ext4 and jbd2, which tests/guest/accuracy/tests/ext4.sh records, and says who modified
each block in each transaction.

A modification is a call of jbd2_journal_dirty_metadata. A task makes most of them for itself. It makes one for others if it

- writes pages back (ext4_writepages) or marks their extents as written (ext4_convert_unwritten_extents): it works for the tasks
  that wrote to that file;
- evicts an inode (ext4_evict_inode): it works for the task that removed the inode's last name (drop_nlink, clear_nlink);
- is a kernel thread otherwise: for whom it works is not known.
"""

import collections
import dataclasses
import re

LINE = re.compile(r"^\s*(?P<comm>.+)-(?P<pid>\d+)\s+\[\d+\] \S+\s+(?P<s>\d+)\.(?P<us>\d{6}): (?P<event>\w+): \(.*?\)(?P<fields>.*)$")
KERNEL = re.compile(r"^(kworker/|jbd2/|kswapd|ext4-)")

# The functions within which a task works for others, by the event of their beginning.
INSIDE = {"writeback": "written", "convert": "converted", "evict": "evicted"}
ENDS = frozenset(INSIDE.values())


@dataclasses.dataclass(frozen=True)
class Modification:
    """One call of jbd2_journal_dirty_metadata. `who` has the tasks for which it may have been made: one of them is its cause. It
    is empty if that is not known, and `reason` then says why."""

    ns: int
    tid: int
    who: frozenset
    reason: str = ""


class Trace:
    """The modifications by (device, block), in time order, and the times at which a block was freed."""

    def __init__(self, lines):
        self.modifications = collections.defaultdict(list)
        self._freed = collections.defaultdict(list)
        self._writers = collections.defaultdict(set)
        self._removers = {}
        self._inside = collections.defaultdict(list)
        for line in lines:
            match = LINE.match(line)
            if not match:
                raise ValueError(f"not understood: {line}")
            fields = dict(field.split("=", 1) for field in match["fields"].split())
            fields = {name: int(value, 0) for name, value in fields.items() if value[0].isdigit()}
            ns = int(match["s"]) * 10**9 + int(match["us"]) * 1000
            is_kernels = bool(KERNEL.match(match["comm"]))
            self._event(match["event"], ns, int(match["pid"]), is_kernels, fields)

    def _event(self, event, ns, pid, is_kernels, fields):
        inode = fields.get("dev"), fields.get("ino")
        if event == "modify":
            who, reason = self._causers(pid, is_kernels)
            change = Modification(ns, fields["tid"], who, reason)
            self.modifications[fields["dev"], fields["block"]].append(change)
        elif event in ("forget", "revoke"):
            self._freed[fields["dev"], fields["block"]].append((ns, fields["tid"]))
        elif event in ("write", "store"):
            self._writers[inode].add(pid)
        elif event in ("drop", "clear"):
            self._removers[inode] = pid
        elif event in INSIDE:
            self._inside[pid].append((event, inode))
        elif event in ENDS:
            self._leave(event, ns, pid)
        else:
            raise ValueError(f"no such event: {event}")

    def _leave(self, event, ns, pid):
        inside = self._inside[pid]
        began, inode = inside.pop() if inside else (None, None)
        if INSIDE.get(began) != event:
            raise ValueError(f"{ns}: {event} of task {pid} without its beginning: the trace is not whole")
        if event == "evicted":
            # The next file with this number is another one.
            self._writers.pop(inode, None)
            self._removers.pop(inode, None)

    def _causers(self, pid, is_kernels):
        """Returns the tasks for which this task modifies a block now, and why these are not known."""
        own = frozenset() if is_kernels else frozenset([pid])
        if not self._inside[pid]:
            return own, "kernel thread" if is_kernels else ""
        function, inode = self._inside[pid][-1]
        if function == "evict":
            remover = self._removers.get(inode)
            return (frozenset([remover]), "") if remover else (own, "eviction" if is_kernels else "")
        who = own | self._writers[inode]
        return who, "" if who else "writeback"

    def in_transaction(self, place, tid):
        """Returns the modifications of a block in a transaction. If the transaction freed the block and uses it again, what was
        done before does not count."""
        freed = max((ns for ns, of in self._freed.get(place, ()) if of == tid), default=0)
        return [change for change in self.modifications.get(place, ()) if change.tid == tid and change.ns > freed]

    def between(self, place, from_ns, to_ns):
        """Returns the modifications of a block after `from_ns`, up to `to_ns`, and after it was last freed."""
        freed = max((ns for ns, _ in self._freed.get(place, ()) if ns <= to_ns), default=0)
        return [change for change in self.modifications.get(place, ()) if max(freed, from_ns) < change.ns <= to_ns]
