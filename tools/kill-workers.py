#!/usr/bin/env python3
"""Kills worker processes, and checks that sessions learn when tasks end.

tools/kill-workers.py [-n KILLS] [--lanes N] [--seed N] NGINX MODULE DIRECTORY

Several lanes run at once, each an nginx with four worker processes.  Clients
with sessions repeatedly call a tool as a task, each with its session's stream
open; a worker completes the tasks.  Worker processes are killed with SIGKILL:
half of them at random times; the others by a client, when it receives the
response to its call, and it kills the process that sent it.  The stream, which
is reopened whenever it breaks, must report the end of every task that a client
received.

Exits with status 1 if the end of a task was not reported, or if the table is
inconsistent.  Prints how long the reports took, from the time when the task
was known to have ended and its stream was open.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "t", "lib"))

sys.dont_write_bytecode = True

from nginx import Connection, Gone, Server

WORKERS = 4
SESSIONS = 6
TOOL = "dig"

# from one kill to the next, on average, in seconds
PAUSE = 0.05

# what takes longer is listed; who waited so long for an end gives up
SOON = 1.0
DRAIN = 10.0

# tasks that a client may have under way
UNDER_WAY = 20

# so many kills, then a new nginx
ROUND = 250


class Lane:
    def __init__(self, args, number):
        self.args = args
        self.random = random.Random("%s-%d" % (args.seed, number))
        self.dir = os.path.join(os.path.abspath(args.directory),
                                "lane-%d" % number)
        self.counts = dict.fromkeys(("kills", "by clients", "tasks", "missed",
                                     "late"), 0)
        self.delays = []
        self.wrong = []

    def run(self, kills):
        while self.counts["kills"] < kills and not self.wrong:
            self.round(min(ROUND, kills - self.counts["kills"]))

        return self.counts, self.delays, self.wrong

    def round(self, kills):
        shutil.rmtree(self.dir, ignore_errors=True)
        self.server = Server(self.args.nginx, self.args.module, self.dir,
                             {TOOL: {"backoff": 1, "attempts": 100}}, size="64m",
                             workers=WORKERS)
        self.server.start()
        self.over = self.ended = False
        self.ends = {}
        self.trigger = threading.Event()

        clients = [Client(self) for _ in range(SESSIONS)]
        threads = [threading.Thread(target=f, daemon=True) for f in
                   [self.work] + [c.call for c in clients]
                   + [c.listen for c in clients]]

        try:
            for thread in threads:
                thread.start()

            for _ in range(kills):
                self.kill()

            self.over = True
            end = time.monotonic() + DRAIN

            while (any(c.waiting() for c in clients)
                   and time.monotonic() < end):
                time.sleep(0.1)

            self.ended = True
            check = self.check()
        finally:
            self.over = self.ended = True
            self.server.kill()

        for c in clients:
            self.count(c)

        if check != "ok":
            self.wrong.append("the table: " + check)

        self.wrong += self.server.faults()

    def count(self, client):
        self.counts["tasks"] += len(client.answered)
        self.counts["missed"] += len(client.waiting())
        self.wrong += ["the end of %s was not told" % task
                       for task in client.waiting()]

        for task, (told, opened) in client.told.items():
            if task in self.ends and task in client.answered:
                delay = told - max(self.ends[task], client.answered[task],
                                   opened)
                self.delays.append(max(delay, 0))
                self.counts["late"] += delay > SOON

    def kill(self):
        time.sleep(self.random.expovariate(1 / PAUSE))

        while len(self.server.children()) < WORKERS:
            time.sleep(0.001)

        if self.random.random() < 0.5:
            self.trigger.set()
            end = time.monotonic() + 1

            while self.trigger.is_set() and time.monotonic() < end:
                time.sleep(0.001)

            if not self.trigger.is_set():
                self.counts["kills"] += 1
                self.counts["by clients"] += 1
                return

            self.trigger.clear()

        try:
            os.kill(self.random.choice(self.server.children()), signal.SIGKILL)
            self.counts["kills"] += 1
        except (IndexError, ProcessLookupError):
            pass

    def answered_by(self, pid):
        """by a client that has just read an answer of this process"""

        if self.trigger.is_set():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.trigger.clear()

    def work(self):
        conn = self.server.connect()

        while not self.ended:
            try:
                got = conn.work("claim", tools=[TOOL], max=20, waitMs=200,
                                leaseMs=1500)
                for task in got.get("result", {}).get("tasks", []):
                    self.complete(conn, task)
            except Gone:
                pass

    def complete(self, conn, task):
        for _ in range(20):
            try:
                got = conn.work("complete", taskId=task["taskId"],
                                lease=task["lease"], result={"content": []})
            except Gone:
                continue

            # the answer to an earlier attempt may be what was lost
            if ("result" in got
                    or got["error"].get("data", {}).get("reason")
                    == "task_terminal"):
                self.ends.setdefault(task["taskId"], time.monotonic())
            return

    def check(self):
        for _ in range(100):
            try:
                _, _, body = self.server.connect().request(
                    "GET", "/probe?op=check")
                return json.loads(body)["check"]
            except Gone:
                pass
        return "no answer"


class Client:
    """a session, the calls in it, and its stream"""

    def __init__(self, lane):
        self.lane = lane
        self.answered = {}
        self.told = {}
        self.session = self.initialize()

    def waiting(self):
        return [task for task in list(self.answered) if task not in self.told]

    def headers(self):
        return ("Host: localhost\r\nX-User: ann\r\n"
                "MCP-Protocol-Version: 2025-11-25\r\n"
                "Accept: application/json, text/event-stream\r\n"
                "Content-Type: application/json\r\n")

    def post(self, conn, method, params, more=""):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method,
                           "params": params})
        conn.send(("POST /mcp HTTP/1.1\r\n%s%sContent-Length: %d\r\n\r\n%s"
                   % (self.headers(), more, len(body), body)).encode())
        _, headers, body = conn.receive()
        return headers, json.loads(body)

    def initialize(self):
        headers, _ = self.post(self.lane.server.connect(), "initialize", {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"}})
        return "Mcp-Session-Id: %s\r\n" % headers["mcp-session-id"]

    def call(self):
        conn = self.lane.server.connect()
        pid = 0

        while not self.lane.over:
            if len(self.waiting()) >= UNDER_WAY:
                time.sleep(0.001)
                continue

            try:
                if conn.socket is None:
                    _, _, body = conn.request("GET", "/probe?op=pid")
                    pid = json.loads(body)["pid"]

                _, got = self.post(conn, "tools/call",
                                   {"name": TOOL, "task": {}}, self.session)
                self.lane.answered_by(pid)
                self.answered[got["result"]["task"]["taskId"]] = \
                    time.monotonic()
            except Gone:
                pass

    def listen(self):
        last = ""

        while not self.lane.ended:
            conn = Connection(self.lane.server.port)

            try:
                conn.send(("GET /mcp HTTP/1.1\r\n%s%s%s\r\n"
                           % (self.headers(), self.session, last)).encode())
                conn.socket.settimeout(1)

                while b"\r\n\r\n" not in conn.buffer:
                    conn.more()

                conn.buffer = conn.buffer.partition(b"\r\n\r\n")[2]
                opened = time.monotonic()
                text = b""

                while not self.lane.ended:
                    text = self.events(text + self.chunk(conn), opened)
                    last = ("Last-Event-ID: %s\r\n" % self.last
                            if self.last else "")
            except Gone:
                pass

            conn.close()

    last = ""

    @staticmethod
    def chunk(conn):
        while b"\r\n" not in conn.buffer:
            conn.more()

        size, _, rest = conn.buffer.partition(b"\r\n")
        size = int(size, 16)

        if size == 0:
            raise Gone("ended")

        while len(rest) < size + 2:
            conn.more()
            rest = conn.buffer.partition(b"\r\n")[2]

        conn.buffer = rest[size + 2:]
        return rest[:size]

    def events(self, text, opened):
        """what is left of the text"""

        *whole, left = text.split(b"\n\n")

        for event in whole:
            for line in event.decode().split("\n"):
                if line.startswith("id: "):
                    self.last = line[4:]
                elif line.startswith("data: ") and len(line) > 6:
                    params = json.loads(line[6:]).get("params", {})
                    if params.get("status") in ("completed", "failed"):
                        self.told.setdefault(params["taskId"],
                                             (time.monotonic(), opened))

        return left


def lane(args, number, kills, results):
    try:
        results.put(Lane(args, number).run(kills))
    except Exception as e:
        results.put(({}, [], ["lane %d: %r" % (number, e)]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=3000)
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--seed", default=str(random.SystemRandom().random()))
    parser.add_argument("nginx")
    parser.add_argument("module")
    parser.add_argument("directory")
    args = parser.parse_args()

    print("seed %s" % args.seed, flush=True)

    results = multiprocessing.Queue()
    share = -(-args.n // args.lanes)
    lanes = [multiprocessing.Process(target=lane,
                                     args=(args, i, share, results))
             for i in range(args.lanes)]

    for process in lanes:
        process.start()

    counts, delays, wrong = {}, [], []

    for _ in lanes:
        part, times, faults = results.get()
        delays += times
        wrong += faults
        for name, n in part.items():
            counts[name] = counts.get(name, 0) + n

    for process in lanes:
        process.join()

    print(", ".join("%s %d" % item for item in counts.items()))

    if delays:
        delays.sort()
        print("notified after: median %.1f ms, 99%% within %.1f ms, at most "
              "%.1f ms" % tuple(1000 * delays[int(part * (len(delays) - 1))]
                                for part in (0.5, 0.99, 1)))

    for line in wrong[:20]:
        print(line)

    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
