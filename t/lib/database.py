"""The database of a store, as tests read it."""

import json
import re
import sqlite3

from ledger import ENDED, Row

PHASES = ("queued", "running", "input_required") + ENDED


class Malformed(Exception):
    pass


def connect(path):
    return sqlite3.connect(path, timeout=10, isolation_level=None,
                           uri=path.startswith("file:"))


def rows(db):
    """all tasks; each must be well-formed"""

    found = []

    for (taskid, owner, tool, phase, version, attempt, attempts, params,
         result, error, created, updated, expires) in db.execute(
            "SELECT id, owner, tool, phase, version, attempt, attempts,"
            " params, result, error, created_at, updated_at, expires_at"
            " FROM tasks"):
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
        except (ValueError, TypeError, KeyError) as e:
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
