#!/usr/bin/env python3
"""Tests clients that wait for tasks to end while processes are killed.

tools/endurance.py storm [--waiters N] [--seconds S] [--kills PER-SECOND]
                         [--reload-every S] [--life FROM TO] [--limit S]
                         [--ttl S] NGINX MODULE DIRECTORY
tools/endurance.py reloads [--waiters N] [--reloads N] [--load N] [--old S]
                           [--life FROM TO] [--limit S]
                           NGINX MODULE DIRECTORY

"storm" kills random worker processes and reloads nginx.  Waiters of all kinds
wait for tasks to end: long polls, event streams of a task and of an owner,
subscriptions/listen, blocked tasks/result, session streams.  A waiter that is
disconnected reconnects like a real client: with the version, or with
Last-Event-ID, after the time in "retry".  If a waiter has not learned that a
task ended after --limit seconds, that end is missed.  No end may be missed,
and no response may be unexpected.  Tasks end between FROM and TO seconds after
their creation, and must have ended before their --ttl.

"reloads" reloads nginx while --load busy processes use the processors.  Old
worker processes must exit within --old seconds after the signal, and no
connection may be cut.  A process is overdue only if it took longer than that,
and longer than this script had to wait for a processor in the same time.

At the end, when all tasks are gone, the zone must use as many slots and blocks
as at the start, no waiter may be counted, and the memory and descriptors of
processes must be as at the start.

Exits with status 1 if a check fails.  --deaf sets the number of waiters that
do not reconnect, to verify that the test detects them.
"""

import argparse
import collections
import json
import os
import random
import resource
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "t", "lib"))

sys.dont_write_bytecode = True

from nginx import TIMEOUT, Gone, Server
from waiters import KINDS, LEASE, Group, Loop, now

WORKERS = 4

# of memory, by chance: pages come and go
CHANCE = 1 << 20


class Test:
    def __init__(self, args):
        self.args = args
        self.life = args.life
        self.limit = args.limit
        self.loop = Loop()
        self.random = random.Random(args.seed)
        self.count = collections.Counter()
        self.wrong = collections.Counter()
        self.missed = []
        self.late = []
        self.memory = []
        self.old = []
        self.leaving = {}
        self.overdue = 0
        self.stopping = self.over = False

        groups = -(-args.waiters // len(KINDS))
        path = os.path.abspath(args.directory)
        shutil.rmtree(path, ignore_errors=True)

        self.server = Server(
            args.nginx, args.module, path,
            {"g%d" % i: {"ttl": args.ttl * 1000, "attempts": 99,
                         "backoff": 100} for i in range(groups)},
            workers=WORKERS, connections=args.waiters + 1000,
            main="worker_rlimit_nofile %d;" % (args.waiters + 2000),
            listen="reuseport backlog=4096",
            server="mcp_tasks_max_waiters 0 zone=0; mcp_tasks_lease %ds;"
                   " mcp_tasks_retention completed=%ds;"
                   % (LEASE, args.limit))
        self.server.start()

    def ask(self, uri):
        """the figures that the server gives of itself"""

        end = now() + TIMEOUT

        while True:
            connection = self.server.connect()
            try:
                return json.loads(connection.request("GET", uri)[2])
            except Gone:
                if now() > end:
                    raise
                time.sleep(0.1)
            finally:
                connection.close()

    def used(self):
        """slots, blocks, and requests that wait"""

        status = self.ask("/status")
        return (status["slots"]["used"], status["blocks"]["used"],
                self.ask("/probe?op=waits")["zone"])

    def private(self, pid):
        """memory that a process does not share, in bytes"""

        try:
            with open("/proc/%d/statm" % pid) as f:
                _, resident, shared = f.read().split()[:3]
            return (int(resident) - int(shared)) * 4096
        except OSError:
            return 0

    def descriptors(self):
        """of the master, once it has closed what belonged to processes that
        are gone: the fewest of half a second"""

        path, least, end = ("/proc/%d/fd" % self.server.process.pid, None,
                            now() + 0.5)

        while now() < end:
            n = len(os.listdir(path))
            least = n if least is None else min(least, n)
            time.sleep(0.05)

        return least

    def sample(self):
        """of the master, and the most that a worker process has"""

        pids = self.server.children()
        self.memory.append((self.private(self.server.process.pid),
                            max([self.private(pid) for pid in pids],
                                default=0)))
        if not self.over:
            self.loop.after(1, self.sample)

    def kill(self):
        pids = self.server.children()
        if pids and not self.stopping:
            os.kill(self.random.choice(pids), signal.SIGKILL)
            self.count["kills"] += 1
        if not self.stopping:
            self.loop.after(1 / self.args.kills, self.kill)

    def delayed(self):
        """for how long this process was ready, and had no processor"""

        with open("/proc/self/schedstat") as f:
            return int(f.read().split()[1]) / 1e9

    def reload(self):
        """the old processes are watched until they have gone"""

        began = now(), self.delayed()

        for pid in self.server.children():
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            self.leaving[fd] = pid
            self.loop.watch(fd, select.EPOLLIN,
                            lambda events, fd=fd: self.gone(fd, began))

        self.server.process.send_signal(signal.SIGHUP)
        self.count["reloads"] += 1

    def gone(self, fd, began):
        self.loop.forget(fd)
        os.close(fd)
        del self.leaving[fd]
        taken = now() - began[0]
        self.old.append(taken)

        # theirs are no busier than this process is
        if taken > self.args.old + self.delayed() - began[1]:
            self.overdue += 1

    def reload_again(self):
        if not self.stopping:
            self.reload()
            self.loop.after(self.args.reload_every, self.reload_again)

    def connected(self):
        return sum(1 for group in self.groups for waiter in group.waiters
                   if waiter.busy and waiter.channel.socket)

    def start(self):
        # before it has processes, a signal to reload would end it
        self.loop.run(TIMEOUT, lambda: len(self.server.children()) == WORKERS)

        # as it is after a reload, and when somebody has been served
        self.reload()
        self.loop.run(30, lambda: not self.leaving)
        self.old.clear()
        self.overdue = 0
        self.count.clear()
        self.before = self.used()
        self.descriptors_before = self.descriptors()

        size = self.args.waiters
        self.groups = set()
        for i in range(-(-size // len(KINDS))):
            self.groups.add(Group(self, i, min(len(KINDS),
                                               size - i * len(KINDS))))
        self.everybody = list(self.groups)
        for waiter in self.everybody[0].waiters[:self.args.deaf]:
            waiter.deaf = True

        if not self.loop.run(
                60, lambda: self.connected() >= self.args.waiters * 0.9):
            self.wrong["only %d waiters came to wait"
                       % self.connected()] += 1

        self.sample()

    def storm(self):
        if self.args.kills:
            self.kill()
        if self.args.reload_every:
            self.loop.after(self.args.reload_every, self.reload_again)

        end = now() + self.args.seconds

        while now() < end:
            self.loop.run(min(60, end - now()))
            self.say()

    def reloads(self):
        seconds = self.args.reloads * 30
        busy = [subprocess.Popen(
            [sys.executable, "-c", "import signal\nsignal.alarm(%d)\n"
             "while True: pass" % seconds]) for _ in range(self.args.load)]

        try:
            for _ in range(self.args.reloads):
                self.loop.run(10, lambda: self.connected()
                              >= self.args.waiters * 0.9)
                self.count["waiting"] += self.connected()
                self.reload()
                self.loop.run(10, lambda: not self.leaving)
                self.overdue += len(self.leaving)
                self.loop.run(10, lambda: not self.leaving)
        finally:
            for process in busy:
                process.kill()
                process.wait()

        self.say()

    def finish(self):
        """everybody hears of the last ends; then all tasks expire"""

        self.stopping = True
        args = self.args
        self.loop.run(args.life[1] + 2 * args.limit + 60,
                      lambda: not self.groups)
        self.over = True

        for group in self.everybody:
            if group in self.groups:
                self.wrong["%s did not come to an end" % group.name] += 1
            group.channel.close()
            for waiter in group.waiters:
                waiter.channel.close()

        self.loop.run(10, lambda: not self.leaving)
        self.overdue += len(self.leaving)
        end = now() + args.ttl + args.limit + 10

        while self.used() != self.before and now() < end:
            time.sleep(0.2)

        self.after = self.used()
        self.check = self.ask("/probe?op=check")["check"]
        self.descriptors_after = self.descriptors()

        if not self.server.stop():
            self.wrong["nginx did not stop"] += 1

    def say(self):
        print("%6.0f s: %d tasks, %d ends received, %d connections cut,"
              " %d kills, %d reloads, %d waiting, %d missed" % (
                  now() - self.began, self.count["tasks"], len(self.late),
                  self.count["cut"], self.count["kills"],
                  self.count["reloads"], self.connected(), len(self.missed)),
              flush=True)

    def run(self):
        self.began = now()
        try:
            self.start()
            getattr(self, self.args.form)()
            self.finish()
        finally:
            self.server.kill()

        return self.report()

    def grown(self):
        """memory of the first and of the last quarter: the master and, the most
        of them, worker processes"""

        quarter = max(1, len(self.memory) // 4)
        parts = self.memory[:quarter], self.memory[-quarter:]
        return [[statistics.median(one[0] for one in part),
                 max(one[1] for one in part)] for part in parts]

    def report(self):
        bad = []

        def line(good, *words):
            print(" ".join(str(word) for word in words))
            if not good:
                bad.append(words[0])

        late = sorted(self.late) or [0]
        kinds = collections.Counter(kind for kind, _ in self.missed)
        line(all(self.count[kind.kind] for kind in KINDS), "received:",
             ", ".join("%s %d" % (kind.kind, self.count[kind.kind])
                       for kind in dict.fromkeys(KINDS)))
        line(True, "received after: median %.3f s, 99%% %.3f s, at most"
             " %.3f s" % (statistics.median(late),
                          late[len(late) * 99 // 100], late[-1]))
        line(not self.missed, "missed:", len(self.missed), *(
            "%s %d" % item for item in kinds.items()))
        line(not self.wrong, "unexpected answers:", sum(self.wrong.values()))
        for what, n in self.wrong.most_common(10):
            print("  %d x %s" % (n, what))

        if self.args.form == "reloads":
            line(not self.count["cut"], "connections cut:", self.count["cut"])
            line(True, "waiting requests at a reload: %.0f on average"
                 % (self.count["waiting"] / self.count["reloads"]))

        line(self.args.form == "storm" or not self.overdue,
             "old processes: %d in %d reloads, the slowest exited after %.3f s,"
             " median %.3f s, later than %g s: %d, overdue: %d" % (
                 len(self.old), self.count["reloads"],
                 max(self.old, default=0),
                 statistics.median(self.old or [0]), self.args.old,
                 sum(1 for taken in self.old if taken > self.args.old),
                 self.overdue))

        # a sanitizer keeps what was freed
        with open(self.args.module, "rb") as f:
            sanitized = b"__asan_init" in f.read()

        (master, worker), (master2, worker2) = self.grown()
        line(sanitized or (master2 - master < CHANCE and
                           worker2 - worker < max(CHANCE, worker / 4)),
             "memory: master %d -> %d KB, largest worker process"
             " %d -> %d KB" % (
                 master / 1024, master2 / 1024, worker / 1024, worker2 / 1024))
        line(self.descriptors_before == self.descriptors_after,
             "descriptors of the master: %d -> %d" % (
                 self.descriptors_before, self.descriptors_after))
        line(self.before == self.after,
             "slots, blocks and waiters in use: %s -> %s" % (
                 self.before, self.after))
        line(self.check == "ok", "table:", self.check)

        faults = self.server.faults()
        line(not faults, "log:", len(faults), "\n".join(faults[:10]))
        print("FAILED: " + ", ".join(bad) if bad else "ok")
        return not bad


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("form", choices=("storm", "reloads"))
    parser.add_argument("--waiters", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--kills", type=float, default=1)
    parser.add_argument("--reload-every", type=float, default=10)
    parser.add_argument("--reloads", type=int, default=10)
    parser.add_argument("--load", type=int, default=10)
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--ttl", type=int)
    parser.add_argument("--life", type=float, nargs=2, default=(1, 4))
    parser.add_argument("--old", type=float, default=2)
    parser.add_argument("--deaf", type=int, default=0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("nginx")
    parser.add_argument("module")
    parser.add_argument("directory")
    args = parser.parse_args()
    args.ttl = args.ttl or int(args.life[1]) + args.limit + 2 * LEASE

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    if args.waiters + 2000 > files:
        sys.exit("%d waiters need more than %d files" % (args.waiters, files))

    sys.exit(0 if Test(args).run() else 1)


if __name__ == "__main__":
    main()
