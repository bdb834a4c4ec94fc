#!/usr/bin/env python3
"""Compares a store on disk with a plain zone and with SQLite alone.

bench/store.py NGINX MODULE BARE DIRECTORY

Measures how many tasks per second are created, and how many are claimed and
completed, by 64 concurrent clients with one worker process: in a plain zone,
and with a store and each sync mode.  BARE (bench/store.c) makes the same
changes to the same database without nginx: with a commit for each change, and
with as many changes in each commit as there were with sync=always.  All
variants take turns, for ROUNDS and SECONDS as in bench/performance.py, and the
best round counts.

Then nginx starts with a database of 1,000,000 tasks.  DIRECTORY should be on
the disk to be measured.  QUICK=1 is a short run: one round, and 100,000 tasks.

Exits with status 1 if a limit is not met.
"""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time

import performance
from common import (Nginx, QUICK, cpu_of, die, others, progress,
                    was_busy)
from mcp import Client, Connection, claim, complete
from performance import CYCLE, ROUNDS, SECONDS, measure

MANY = 100000 if QUICK else 1000000

# what must hold
LOAD = 10                       # seconds, for all of them
EACH = 1.0                      # of what SQLite does with a commit for each

SYNCS = ("off", "everysec", "always")

HTTP = """
    mcp_tasks_zone  zone=tasks:%s %s;
    mcp_tasks_ttl   1h;
"""

TASK, LEASE = "@" * 36, "@" * 16


def server(name, size="512m", sync=None, kind=Nginx):
    directory = os.path.join(DIRECTORY, name)
    store = "store=sqlite:%s/tasks.db sync=%s" % (directory, sync)

    return kind(NGINX, directory, main="load_module %s;" % MODULE,
                http=HTTP % (size, store if sync else ""),
                server=performance.OURS)


def store_of(nginx):
    return json.loads(nginx.get("/status"))["store"]


def ask(nginx, request):
    connection = Connection(nginx.port)
    _, body = connection.ask(request)
    connection.close()
    answer = json.loads(body)

    if "result" not in answer:
        die("not a result: %s" % body.decode())
    return answer["result"]


def measure_zone(sync):
    """in a new zone, with a new database"""

    name = sync or "plain"
    shutil.rmtree(os.path.join(DIRECTORY, name), ignore_errors=True)
    client = Client("/mcp?owner=bench", "modern")

    with server(name, sync=sync) as nginx:
        pids = nginx.children()
        made = measure(nginx.port, pids, [client.call()])
        batch = 0

        if sync:
            store = store_of(nginx)
            batch = store["rows"] / max(1, store["commits"])

        done = measure(nginx.port, pids,
                       [claim("/worker"), complete("/worker", TASK, LEASE)],
                       CYCLE)

    return {"create": made["rate"], "finish": done["rate"] / 2,
            "create_p99": made["p99"], "finish_p99": done["p99"],
            "batch": batch}


def template():
    """a database with one task that is completed"""

    shutil.rmtree(os.path.join(DIRECTORY, "template"), ignore_errors=True)

    with server("template", "8m", "always") as nginx:
        ask(nginx, Client("/mcp?owner=bench", "modern").call())
        task = ask(nginx, claim("/worker"))["tasks"][0]
        ask(nginx, complete("/worker", task["taskId"], task["lease"]))

    return os.path.join(DIRECTORY, "template", "tasks.db")


def measure_bare(made, batch):
    rates = {}

    for what in "create", "finish":
        directory = os.path.join(DIRECTORY, "bare")
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        path = shutil.copy(made, directory)

        said = subprocess.run([BARE, path, what, str(batch), str(SECONDS)],
                              stdout=subprocess.PIPE, text=True, check=True)
        rates[what] = float(said.stdout)

    return rates


def rates():
    """{side: {name: best}}; SQLite's batches are those of sync=always"""

    best = {}
    made = template()

    def note(side, number, values):
        progress("round %d of %d: %s" % (number + 1, ROUNDS, side))
        old = best.setdefault(side, values)
        for name, value in values.items():
            better = min if name.endswith("p99") else max
            old[name] = better(old[name], value)

    for number in range(ROUNDS):
        for sync in (None,) + SYNCS:
            note(sync or "plain", number, measure_zone(sync))

        batch = max(1, round(best["always"]["batch"]))
        note("each", number, measure_bare(made, 1))
        note("batches", number, measure_bare(made, batch))

    progress("")
    return best


def generate(made, path):
    """so many tasks of all kinds, like the one that is there"""

    db = sqlite3.connect(path)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")

    with sqlite3.connect(made) as source:
        source.backup(db)

    (seq,), = db.execute("SELECT seq FROM task")
    columns = [row[1] for row in db.execute("PRAGMA table_info(task)")]
    at = {"seq": "n", "id": "lower(printf('%s-%s-4%s-8%s-%s',"
          " hex(randomblob(4)), hex(randomblob(2)),"
          " substr(hex(randomblob(2)), 2), substr(hex(randomblob(2)), 2),"
          " hex(randomblob(6))))",
          "owner": "'owner' || n % 1000", "tool": "'tool' || n % 100",
          "changed": "n", "turned": "n", "moved": "n"}
    ns = "WITH RECURSIVE s(n) AS (SELECT %d UNION ALL SELECT n + 1 FROM s" \
         " LIMIT %d)" % (seq + 10, MANY - 1)

    db.execute("%s INSERT INTO task SELECT %s FROM s, task WHERE seq = %d"
               % (ns, ", ".join(at.get(name, name) for name in columns), seq))
    db.execute("%s INSERT INTO payload SELECT n * 8 + key %% 8, data"
               " FROM s, payload WHERE key / 8 = %d" % (ns, seq))

    # a half of them waits for a worker
    db.execute("UPDATE task SET state = 'queued', lease = 0, attempt = 0,"
               " queue_seq = seq, since_at = created_at WHERE seq % 2")
    db.execute("DELETE FROM payload WHERE key % 8 != 0 AND key / 8 % 2")
    db.commit()
    db.close()


class Loading(Nginx):
    """until it serves, however long that takes"""

    def __enter__(self):
        self.nginx = subprocess.Popen(
            [self.binary, "-e", "stderr", "-p", self.dir + "/",
             "-c", os.path.join(self.dir, "nginx.conf")])

        while True:
            if self.nginx.poll() is not None:
                die("nginx did not start: see %s" % self.dir)
            with contextlib.suppress(OSError):
                self.get("/status")
                return self
            time.sleep(0.02)


def memory(pid):
    """of a process, in bytes, by name"""

    with open("/proc/%d/status" % pid) as f:
        return {name: int(kb) * 1024 for name, kb
                in re.findall(r"(?m)^(\w+):\s+(\d+) kB", f.read())}


def measure_load(made):
    directory = os.path.join(DIRECTORY, "load")
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    path = os.path.join(directory, "tasks.db")

    progress("writing %d tasks" % MANY)
    generate(made, path)
    progress("loading %d tasks" % MANY)

    before = time.monotonic()
    with server("load", "%dm max_tasks=%d" % (1600 * MANY // 1000000 + 10,
                                              MANY + 10),
                "always", Loading) as nginx:
        took = time.monotonic() - before
        cpu = cpu_of([nginx.nginx.pid])
        status = json.loads(nginx.get("/status"))
        used = memory(nginx.nginx.pid)
        zone = used["RssShmem"]

        if status["slots"]["used"] != MANY:
            die("%d tasks of %d were loaded" % (status["slots"]["used"],
                                                MANY))

    progress("")
    return {"seconds": took, "cpu": cpu, "file": os.path.getsize(path), "zone": zone,
            "peak": used["VmHWM"] - zone}


def table(best):
    print("%-34s %9s %9s %9s %9s %9s %9s" % (
        "", "create/s", "of plain", "p99 ms", "finish/s", "of plain",
        "p99 ms"))

    names = {"plain": "plain zone", "each": "SQLite, a commit for each",
             "batches": "SQLite, %d in a commit"
                        % max(1, round(best["always"]["batch"]))}

    for side, got in best.items():
        words = []
        for what in "create", "finish":
            p99 = got.get(what + "_p99")
            words += ["%9.0f" % got[what],
                      "%9.2f" % (got[what] / best["plain"][what]),
                      "%9.1f" % (p99 / 1000) if p99 else "%9s" % ""]
        print("%-34s %s" % (names.get(side, "sync=" + side), " ".join(words)))


def main():
    started = time.monotonic()
    before = others()
    best = rates()
    load = measure_load(os.path.join(DIRECTORY, "template", "tasks.db"))
    passed = time.monotonic() - started

    print("%d round%s in %d s" % (ROUNDS, "s" * (ROUNDS > 1), passed))
    print(was_busy((others() - before) / passed) + "\n")
    table(best)
    print()

    holds = []

    for what in "create", "finish":
        ratio = best["always"][what] / best["each"][what]
        holds.append((ratio >= EACH, "%s with sync=always: %.2f of what SQLite"
                      " does with a commit for each, and %.2f of it with %d in"
                      " a commit"
                      % (what, ratio,
                         best["always"][what] / best["batches"][what],
                         max(1, round(best["always"]["batch"])))))

    holds.append((load["seconds"] <= LOAD,
                  "{:,} tasks of {:,} MB are loaded in {:.1f} s, of which {:.1f}"
                  " are the processor's; into {:.0f} MB of zone, with {:.0f} MB"
                  " more at most".format(
                      MANY, load["file"] >> 20, load["seconds"], load["cpu"],
                      load["zone"] / 1048576, load["peak"] / 1048576)))

    for good, text in holds:
        print("%-6s %s" % ("ok" if good else "MISSED", text))

    if os.environ.get("JSON"):
        with open(os.environ["JSON"], "w") as f:
            json.dump({"rates": best, "load": load}, f)

    sys.exit(0 if all(good for good, _ in holds) else 1)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    NGINX, MODULE, BARE, DIRECTORY = (os.path.abspath(path)
                                      for path in sys.argv[1:])
    performance.DIRECTORY = DIRECTORY
    os.makedirs(DIRECTORY, exist_ok=True)
    main()
