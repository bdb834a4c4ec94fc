#!/usr/bin/env python3
"""Kills nginx at random moments, and checks whether its store lost anything.

tools/crash-restarts.py [-n RESTARTS] [--sync MODE] [--promise MODE]
                        [--lanes N] [--seed N] NGINX MODULE DIRECTORY

Several lanes run at once.  Each is an nginx with two worker processes and
eight clients that perform all operations on tasks.  All its processes are
killed with SIGKILL, and it is started again.  Every acknowledged change must
be present, and nothing that no client requested.

With sync=everysec, up to a second may be lost: lost changes that were
acknowledged must have been requested within a second of the first lost change.
This must hold for each restart, even if processes are delayed on a busy
machine.  The time from the first lost change to the kill must be less than a
second in most restarts, and always less than SLACK.  --promise checks for the
guarantees of another sync mode than the one in use.

Exits with status 1 if a check fails.  A seed repeats the actions of the
clients, but not the scheduling of the kernel.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "t", "lib"))

sys.dont_write_bytecode = True

import database
from ledger import Ledger
from nginx import Gone, Server
from workload import OWNERS, TOOLS, Workload

SECOND = 1.0
SLACK = 2.5

# so many restarts, then a new database
ROUNDS = 20

# of nginx under load before it is killed, in seconds
LOAD = {"always": (0.0, 0.5), "everysec": (0.2, 3.0), "off": (0.0, 0.5)}

STATUS = {"queued": "working", "running": "working"}


class Wrong(Exception):
    pass


class Lane:
    def __init__(self, args, number):
        self.args = args
        self.number = number
        self.random = random.Random("%s-%d" % (args.seed, number))
        self.losses = []
        self.counts = {"restarts": 0, "acknowledged": 0, "found again": 0,
                       "writers killed before": 0}

    def fresh(self, generation):
        self.dir = os.path.join(os.path.abspath(self.args.directory),
                                "lane-%d-%d" % (self.number, generation))
        shutil.rmtree(self.dir, ignore_errors=True)
        self.path = os.path.join(self.dir, "tasks.db")
        self.server = Server(
            self.args.nginx, self.args.module, self.dir, TOOLS,
            store="store=sqlite:%s sync=%s" % (self.path, self.args.sync),
            size="256m")
        self.ledger = Ledger(time.monotonic)
        self.server.start()

    def run(self, restarts):
        generation = 0

        while self.counts["restarts"] < restarts:
            self.fresh(generation)

            try:
                for _ in range(min(ROUNDS,
                                   restarts - self.counts["restarts"])):
                    self.round()
                    self.counts["restarts"] += 1
            finally:
                self.counts["acknowledged"] += self.ledger.acknowledged
                self.server.kill()

            self.complain(self.server.faults())
            shutil.rmtree(self.dir)
            generation += 1

        return self.counts, self.losses

    def complain(self, wrong):
        if wrong:
            raise Wrong("\n".join(wrong[:20]) + (
                "\nand %d more" % (len(wrong) - 20) if len(wrong) > 20
                else "") + "\nsee " + self.dir)

    def round(self):
        load = Workload(self.server, self.ledger, self.random.random())
        load.start()
        time.sleep(self.random.uniform(*LOAD[self.args.promise]))

        # the one that writes, perhaps: another one has to go on
        if self.random.random() < 0.2:
            self.kill_one()

        killed = time.monotonic()
        self.server.kill()
        load.join()

        if self.args.promise == "always":
            limit = time.monotonic()
        elif self.args.promise == "everysec":
            limit = killed - SLACK
        else:
            limit = 0

        # it may happen again while it reads the database
        while self.random.random() < 0.1:
            self.server.start()
            time.sleep(self.random.uniform(0, 0.05))
            self.server.kill()

        self.server.start()
        self.check(limit)

        since, begun = self.ledger.lost_since, self.ledger.lost_begun
        self.losses.append(max(0, killed - since) if since else 0)

        if (self.args.promise == "everysec" and since and begun
                and begun - since > SECOND):
            self.complain(["changes of %.3f s are lost" % (begun - since)])

    def kill_one(self):
        pids = self.server.children()

        if pids:
            os.kill(self.random.choice(pids), 9)
            self.counts["writers killed before"] += 1
            time.sleep(self.random.uniform(0, 0.3))

    def check(self, limit):
        connection = self.server.connect()

        # it serves, so it has read the database
        status, _, text = connection.request("GET", "/probe?op=check")
        if b'"check":"ok"' not in text:
            self.complain(["the table is not in order: %s" % text.decode()])

        db = database.connect(self.path)
        try:
            database.intact(db)
            rows = database.rows(db)
        except database.Malformed as e:
            self.complain([str(e)])
        finally:
            db.close()

        self.complain(self.ledger.check(rows, limit))
        self.ledger.forget_claims(limit)
        self.complain(self.shown(connection, rows))
        self.counts["found again"] += len(rows)
        connection.close()

    def shown(self, connection, rows):
        """what the server does not show as the database has it"""

        owner = {key: task.owner for key, task in self.ledger.tasks.items()}
        loose = {key for key, task in self.ledger.tasks.items()
                 if task.loose}
        answers = connection.pipeline([
            connection.message("GET", "/mcp/tasks/%s" % row.id,
                               user=owner[row.key]) for row in rows])
        wrong = []

        for row, (status, _, body) in zip(rows, answers):
            # their time goes on
            if row.key in loose and row.phase in ("queued", "running"):
                continue

            task = json.loads(body) if status == 200 else {}
            want = (STATUS.get(row.phase, row.phase), row.version)

            if (task.get("status"), task.get("version")) != want:
                wrong.append("the database has %s, but there is %d %s"
                             % (row, status, body.decode()))

        done = [row for row in rows if row.phase == "completed"]
        answers = connection.pipeline([
            connection.message("GET", "/mcp/tasks/%s/result" % row.id,
                               user=owner[row.key]) for row in done])

        for row, (status, _, body) in zip(done, answers):
            if (status, body) != (200, row.result):
                wrong.append("its result is another: %s" % (row,))

        listed = sum(len(page) for name in OWNERS
                     for page in self.pages(connection, name))
        if listed != len(rows):
            wrong.append("%d tasks are listed, and %d are saved"
                         % (listed, len(rows)))

        return wrong

    def pages(self, connection, owner):
        query = "limit=100"

        while query:
            _, _, body = connection.request("GET", "/mcp/tasks?" + query,
                                            user=owner)
            page = json.loads(body)
            yield page["tasks"]
            query = page.get("nextCursor") and (
                "limit=100&cursor=" + page["nextCursor"])


def run_lane(args, number, restarts, queue):
    try:
        counts, losses = Lane(args, number).run(restarts)
        queue.put((number, counts, losses, None))
    except (Wrong, Gone, RuntimeError, OSError) as e:
        queue.put((number, {}, [], "%s: %s" % (type(e).__name__, e)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--sync", default="always",
                        choices=("always", "everysec", "off"))
    parser.add_argument("--promise", choices=("always", "everysec", "off"))
    parser.add_argument("--lanes", type=int, default=3)
    parser.add_argument("--seed", default=str(random.getrandbits(32)))
    parser.add_argument("nginx")
    parser.add_argument("module")
    parser.add_argument("directory")
    args = parser.parse_args()
    args.promise = args.promise or args.sync

    print("# sync=%s, seed %s" % (args.sync, args.seed), flush=True)
    started = time.monotonic()
    queue = multiprocessing.Queue()
    lanes = [multiprocessing.Process(
                target=run_lane,
                args=(args, i, (args.n + i) // args.lanes, queue))
             for i in range(args.lanes)]

    for lane in lanes:
        lane.start()

    total, losses, failed = {"acknowledged": 0}, [], False

    for _ in lanes:
        number, counts, lost, wrong = queue.get()
        losses += lost

        for what, n in counts.items():
            total[what] = total.get(what, 0) + n

        if wrong:
            failed = True
            print("# lane %d: %s" % (number, wrong.replace("\n", "\n# ")),
                  flush=True)

    for lane in lanes:
        lane.join()

    print("# %s; %.0f s" % (", ".join("%d %s" % (n, what)
                                      for what, n in total.items()),
                            time.monotonic() - started))

    if losses:
        middle = statistics.median(losses)
        print("# lost: %.2f s at most, median %.2f s"
              % (max(losses), middle))
        failed |= args.promise == "everysec" and middle > SECOND

    sys.exit(1 if failed or total["acknowledged"] < args.n else 0)


main()
