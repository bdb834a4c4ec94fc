"""The database of a store, as tests read it."""

import json
import re
import sqlite3

from ledger import ENDED, Row

PHASES = ("queued", "running", "input_required") + ENDED


# what an event in a task's history may lead to, by their numbers in task.h
EVENTS = {2: "input_required", 3: "completed", 4: "failed", 5: "queued",
          6: "queued", 7: "running", 9: "running", 10: "cancelled",
          14: "queued failed", 15: "failed", 16: "failed",
          19: "queued failed"}


class Malformed(Exception):
    pass


def history(data):
    """[(event, phase)] of the bytes that history.c describes, and how many
    have been dropped before these"""

    entries, at = [], 7
    end = at + data[0]

    while at < end:
        event, state = data[at] & 0x1f, data[at] >> 5
        at += 1

        # the worker of a claim, and when
        for _ in range(2 if event == 7 else 1):
            while data[at] >= 0x80:
                at += 1
            at += 1

        entries.append((event, PHASES[state - 1]))

    if at != end:
        raise Malformed("a history that does not end")

    return entries, data[1]


def check_history(data, phase, version):
    """whoever is killed while writing one leaves none"""

    entries, dropped = history(data)

    for event, after in entries:
        if after not in EVENTS.get(event, "").split():
            raise Malformed("event %d led to %s" % (event, after))

    if entries and (entries[-1][1] != phase
                    or len(entries) + dropped >= version):
        raise Malformed("%s, version %d, but its history is %s after %d more"
                        % (phase, version, entries, dropped))


def connect(path):
    return sqlite3.connect(path, timeout=10, isolation_level=None,
                           uri=path.startswith("file:"))


def rows(db):
    """all tasks; each must be well-formed"""

    found = []

    for (taskid, owner, tool, phase, version, attempt, attempts, params,
         result, error, created, updated, expires, past) in db.execute(
            "SELECT tasks.id, tasks.owner, tasks.tool, phase, tasks.version,"
            " tasks.attempt, tasks.attempts, params, result, error,"
            " tasks.created_at, tasks.updated_at, tasks.expires_at, history"
            " FROM tasks JOIN task USING (seq)"):
        bytes_ = None

        if phase in ("completed", "failed"):
            bytes_ = (error if result is None else result)
            bytes_ = bytes_.encode() if bytes_ is not None else None

        try:
            key = json.loads(params)["arguments"]["key"]
            if result is not None:
                json.loads(result)
            if error is not None:
                json.loads(error)
            check_history(past, phase, version)
        except (ValueError, TypeError, KeyError, IndexError, Malformed) as e:
            raise Malformed("%s: %s: %s" % (taskid, type(e).__name__, e)) \
                from e

        if (phase not in PHASES or version < 1
                or not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}"
                                    r"-[0-9a-f]{12}", taskid)
                or not tool or not owner or not 0 <= attempt <= attempts
                or (phase == "queued") < (version == 1)
                or created > updated + 1000     # clocks of processes
                or (expires is not None and expires < created)):
            raise Malformed("%s: %s, version %s, attempt %s of %s, owner %s, "
                            "tool %s, %s, %s, %s"
                            % (taskid, phase, version, attempt, attempts,
                               owner, tool, created, updated, expires))

        found.append(Row(key, taskid, version, phase, attempt, bytes_))

    return found


def intact(db):
    """what SQLite itself thinks of it"""

    found = [row[0] for row in db.execute("PRAGMA integrity_check")]
    if found != ["ok"]:
        raise Malformed("integrity_check: " + "; ".join(found))
