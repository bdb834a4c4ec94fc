"""Measures how long a client's answer takes to reach the worker that waits.

Each pair of connections has a worker, which asks a question and then waits in
worker/answers, and a client, which answers with tasks/update.  At any time all
workers wait but those that have just got an answer: answers are sent at a
steady rate, each to the worker that has waited longest.
"""

import collections
import gc
import select
import time

import mcp
from common import die

# seconds between two answers
INTERVAL = 0.001

# seconds until all workers wait, and without an event until the server hangs
SETTLE = 0.2
STALLED = 10

LENGTH = b"Content-Length: "


class Side:
    """one of the two connections of a pair"""

    def __init__(self, port, pair):
        self.connection = mcp.Connection(port)
        self.socket = self.connection.socket
        self.pair = pair
        self.data = b""
        self.waits = False       # for a response

    def send(self, request):
        self.waits = True
        self.socket.sendall(request)

    def read(self):
        """the body of the response, None if a part of it is missing"""

        self.data += self.connection.more()
        header, end, body = self.data.partition(b"\r\n\r\n")
        if not end:
            return None

        length = header.partition(LENGTH)[2].partition(b"\r")[0]
        if len(body) < int(length):
            return None

        self.data = b""
        self.waits = False
        return body


class Pair:
    def __init__(self, port):
        self.worker = Side(port, self)
        self.client = Side(port, self)
        self.task = None
        self.asked = False
        self.sent = 0


class Run:
    def __init__(self, port, client, tasks, pairs):
        """tasks: each with its lease token, one for each answer"""

        self.tasks = iter(tasks)
        self.left = len(tasks)
        self.requests = client
        self.waiting = collections.deque()
        self.times = []
        self.epoll = select.epoll()
        self.sides = {}

        for pair in [Pair(port) for _ in range(pairs)]:
            for side in (pair.worker, pair.client):
                self.sides[side.socket.fileno()] = side
                self.epoll.register(side.socket, select.EPOLLIN)
            self.ask(pair)

    def ask(self, pair):
        pair.task = next(self.tasks, None)
        pair.asked = False
        if pair.task:
            pair.worker.send(mcp.question("/worker", *pair.task))

    def answer(self):
        pair = self.waiting.popleft()
        request = self.requests.update(pair.task[0])
        pair.sent = time.monotonic()
        pair.client.send(request)

    def event(self, side, now):
        body = side.read()
        if body is None:
            return

        pair = side.pair

        if b'"result"' not in body:
            die("not a result: %s" % body.decode())

        if side is pair.worker:
            if not pair.asked:
                pair.asked = True
                side.send(mcp.answers("/worker", *pair.task))
                self.waiting.append(pair)
                return

            if not pair.sent or b'"accept"' not in body:
                die("not an answer: %s" % body.decode())

            self.times.append(now - pair.sent)
            pair.sent = 0
            self.left -= 1

        if not pair.worker.waits and not pair.client.waits:
            self.ask(pair)

    def poll(self, timeout):
        events = self.epoll.poll(max(timeout, 0))
        now = time.monotonic()
        for fd, _ in events:
            self.event(self.sides[fd], now)
        return bool(events)

    def run(self):
        """the time that each answer took, in seconds"""

        due = time.monotonic() + SETTLE
        last = due

        while self.left:
            now = time.monotonic()
            if now >= due and self.waiting:
                self.answer()
                due = max(due + INTERVAL, now)
            if self.poll(due - now if self.waiting else STALLED):
                last = now
            elif now > last + STALLED:
                die("no answer has come for %d s" % STALLED)

        for side in self.sides.values():
            side.connection.close()
        self.epoll.close()

        return self.times


def measure(port, client, tasks, pairs):
    """p50, p99 and the maximum, in us"""

    gc.collect()
    gc.disable()
    try:
        times = sorted(Run(port, client, tasks, pairs).run())
    finally:
        gc.enable()

    return {"p50": times[len(times) // 2] * 1e6,
            "p99": times[len(times) * 99 // 100] * 1e6,
            "max": times[-1] * 1e6}
