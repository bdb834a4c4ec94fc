#!/usr/bin/env python3
"""Kills nginx twice in a row, and checks whether a version was used twice.

tools/double-crashes.py [-n CRASHES] [--sync MODE] [--seed N]
                        NGINX MODULE DIRECTORY

Workers report the progress of tasks, each time with a different message, and
readers record the version and message that they see.  All processes are killed
with SIGKILL, nginx is started again, and at most 250 ms later it is killed
once more: changes that readers saw in between may be lost, because they were
never saved.  A version seen afterwards must not have had a different message
before: otherwise a reader that polls with this version would not receive the
change.

Exits with status 1 if a check fails.
"""

import argparse
import json
import os
import random
import shutil
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "t", "lib"))

sys.dont_write_bytecode = True

from nginx import Gone, Server

TASKS = 4
LONG = 0.4
SHORT = 0.25

# so many double crashes, then a new database
ROUNDS = 50


class Lane:
    def __init__(self, args):
        self.args = args
        self.random = random.Random(args.seed)
        self.seen = {}              # (id, version): words
        self.wrong = []
        self.lost = 0               # seen, but not found again
        self.reads = 0
        self.words = 0

    def fresh(self, generation):
        self.dir = os.path.join(os.path.abspath(self.args.directory),
                                "%s-%d" % (self.args.sync, generation))
        shutil.rmtree(self.dir, ignore_errors=True)
        self.server = Server(
            self.args.nginx, self.args.module, self.dir,
            {"work": {"lease": 600000, "attempts": 200}},
            store="store=sqlite:%s/tasks.db sync=%s"
                  % (self.dir, self.args.sync), size="8m")
        self.server.start()
        self.seen.clear()

        c = self.server.connect()
        for _ in range(TASKS):
            c.request("POST", "/mcp/tasks", b'{"tool":"work"}', "ann")

        self.work = c.work("claim", tools=["work"],
                           max=TASKS)["result"]["tasks"]

        # with everysec and off a claim that was answered may be lost
        time.sleep(1.5)
        self.last = {work["taskId"]: 0 for work in self.work}

    def tell(self, until, seed):
        """of one task after the other"""

        rng = random.Random(seed)
        c = self.server.connect()

        try:
            while time.monotonic() < until:
                work = rng.choice(self.work)
                self.words += 1
                c.work("progress", taskId=work["taskId"], lease=work["lease"],
                       message="words %d" % self.words)
        except Gone:
            pass
        finally:
            c.close()

    def read(self, until, seed):
        rng = random.Random(seed)
        c = self.server.connect()

        try:
            while time.monotonic() < until:
                self.look(c, rng.choice(self.work)["taskId"])
        except Gone:
            pass
        finally:
            c.close()

    def look(self, c, taskid):
        status, _, body = c.request("GET", "/mcp/tasks/" + taskid, None, "ann")

        if status == 503:
            return
        if status != 200:
            self.wrong.append("%s: %d" % (taskid, status))
            return

        task = json.loads(body)
        key = taskid, task["version"]
        words = task.get("statusMessage"), task["status"]
        before = self.seen.setdefault(key, words)
        self.reads += 1
        self.last[taskid] = max(self.last[taskid], task["version"])

        if before != words:
            self.wrong.append("%s: version %d was %s, and is %s"
                              % (taskid, task["version"], before, words))

    def live(self, seconds):
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=what, args=(
                       until, self.random.random()))
                   for what in (self.tell, self.read, self.read)]

        for thread in threads:
            thread.start()

        time.sleep(seconds)
        self.server.kill()

        for thread in threads:
            thread.join()

        self.server.start()

    def found(self):
        """how many of the last things that were seen are lost"""

        c = self.server.connect()
        last = dict(self.last)

        for taskid in last:
            self.look(c, taskid)
            self.lost += (taskid, last[taskid]) in self.seen and json.loads(
                c.request("GET", "/mcp/tasks/" + taskid, None, "ann")[2]
            ).get("version", 0) < last[taskid]

        c.close()

    def run(self):
        crashes = 0

        while crashes < self.args.n and not self.wrong:
            self.fresh(crashes)

            for _ in range(min(ROUNDS, self.args.n - crashes)):
                self.live(self.random.uniform(0, LONG))
                self.live(self.random.uniform(0, SHORT))
                self.found()
                crashes += 1

            self.server.kill()
            self.wrong += self.server.faults()

            if not self.wrong:
                shutil.rmtree(self.dir)

        print("%d double crashes, sync=%s: %d reads, %d visible changes lost, "
              "%d errors"
              % (crashes, self.args.sync, self.reads, self.lost,
                 len(self.wrong)))
        print("\n".join(self.wrong[:20]))

        return not self.wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=300)
    parser.add_argument("--sync", default="everysec",
                        choices=("always", "everysec", "off"))
    parser.add_argument("--seed", type=int,
                        default=random.SystemRandom().getrandbits(32))
    parser.add_argument("nginx")
    parser.add_argument("module")
    parser.add_argument("directory")
    args = parser.parse_args()

    print("seed %d" % args.seed)
    lane = Lane(args)

    try:
        good = lane.run()
    finally:
        lane.server.kill()

    sys.exit(0 if good else 1)


main()
