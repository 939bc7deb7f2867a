# SPDX-License-Identifier: MIT OR Apache-2.0
"""Judges what a row says of its cause by all modifications of the row's bytes."""

RIGHT, WRONG, UNASKED = "right", "wrong", "unasked"


def judge(known, named, causers, changes):
    """Returns a verdict and its reason. `known` is the row's cause_known, `named` its cause_pid, `causers` the set of the pids
    of all its causers, `changes` the modifications in time order.

    - exact: every modification is of the one causer.
    - shared: every modification is of a causer, and every causer made one.
    - first: the first modification is of the task that is named.
    """
    if not changes:
        return UNASKED, "nobody modified it while it was traced"
    if known == "first":
        return _first(named, changes)
    if known == "exact" and len(causers) != 1:
        return WRONG, "several causers"
    if any(change.who and not change.who & causers for change in changes):
        return WRONG, "another task modified it too"
    strangers = causers - frozenset().union(*(change.who for change in changes))
    doubts = [change.reason for change in changes if not change.who]
    if doubts:
        return UNASKED, f"for whom one of its modifications was made ({doubts[0]})"
    if strangers:
        return WRONG, "a causer did not modify it"
    if any(len(change.who) > 1 for change in changes):
        return UNASKED, "for which of several tasks one of its modifications was made"
    return RIGHT, ""


def _first(named, changes):
    first = changes[0]
    if not first.who:
        return UNASKED, f"for whom one of its modifications was made ({first.reason})"
    if named not in first.who:
        return WRONG, "another task modified it first"
    if len(first.who) > 1:
        return UNASKED, "for which of several tasks one of its modifications was made"
    return RIGHT, ""
