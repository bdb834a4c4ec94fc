"""Clients that wait for tasks to end, thousands of them in one process.

A Group has an owner and a session.  It creates a task, has its waiters wait for
it, completes it, and counts who has not heard of the end in time; then comes
the next task.  A "test" that has groups says how: loop, server, random; life,
the least and the most seconds that a task lives, and limit; stopping, no more
tasks, and over, nobody comes back.  It gets to know: count and wrong, Counters,
late, seconds after the end of a task, and missed, kinds and tasks; groups loses
those that have stopped.
"""

import heapq
import json
import select
import socket
import time

# of those who complete tasks, in seconds: nginx is to be configured so, too, as
# progress prolongs a lease by the time that is configured
LEASE = 3

META = "io.modelcontextprotocol/"

now = time.monotonic


class Loop:
    """what comes on descriptors, and what is due"""

    def __init__(self):
        self.epoll = select.epoll()
        self.handlers = {}
        self.timers = []
        self.count = 0

    def watch(self, fd, events, handler):
        if fd in self.handlers:
            self.epoll.modify(fd, events)
        else:
            self.epoll.register(fd, events)
        self.handlers[fd] = handler

    def forget(self, fd):
        if self.handlers.pop(fd, None):
            self.epoll.unregister(fd)

    def after(self, seconds, handler):
        self.count += 1
        heapq.heappush(self.timers, (now() + seconds, self.count, handler))

    def run(self, seconds, until=lambda: False):
        """whether it came to be so in time"""

        end = now() + seconds

        while not until():
            left = end - now()
            if left <= 0:
                return False
            if self.timers:
                left = min(left, max(0, self.timers[0][0] - now()))
            for fd, events in self.epoll.poll(min(left, 0.5)):
                handler = self.handlers.get(fd)
                if handler:
                    handler(events)
            while self.timers and self.timers[0][0] <= now():
                heapq.heappop(self.timers)[2]()

        return True


class Channel:
    """Requests over a connection, one at a time.  The owner is told of an
    answer as it comes: began(status, headers), piece(bytes), ended(whole)."""

    def __init__(self, loop, port, owner):
        self.loop = loop
        self.port = port
        self.owner = owner
        self.socket = None
        self.number = 0

    def send(self, data):
        self.number += 1
        self.state = "head"
        self.status = 0

        self.reused = self.socket is not None and not self.stale()

        if not self.reused:
            self.close()
            self.open()
            self.out = data
            return

        try:
            sent = self.socket.send(data)
        except OSError:
            self.cut()
            return

        self.out = data[sent:]
        self.listen()

    def open(self):
        self.buffer = b""
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        # closed with a reset, so that no port waits for the next connection
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                               b"\1\0\0\0\0\0\0\0")
        self.socket.connect_ex(("127.0.0.1", self.port))
        self.loop.watch(self.socket.fileno(), select.EPOLLOUT, self.ready)

    def stale(self):
        """whether the server has closed it, which may not have been read yet"""

        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass

        return True

    def close(self):
        self.number += 1

        if self.socket is not None:
            self.loop.forget(self.socket.fileno())
            self.socket.close()
            self.socket = None

    def cut(self):
        self.close()

        if self.state == "idle":
            return

        # not from within what the owner is doing
        mine = self.number
        self.loop.after(0, lambda: self.owner.ended(False)
                        if mine == self.number else None)

    def listen(self):
        self.loop.watch(self.socket.fileno(),
                        select.EPOLLIN | (select.EPOLLOUT if self.out else 0),
                        self.ready)

    def ready(self, events):
        try:
            if self.out and events & select.EPOLLOUT:
                self.out = self.out[self.socket.send(self.out):]
                self.listen()
            if not events & ~select.EPOLLOUT:
                return
            data = self.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""

        if not data:
            self.cut()
            return

        self.buffer += data

        while self.socket and self.step():
            pass

    def step(self):
        """whether there may be more in what has come"""

        if self.state == "head":
            return self.head()

        if self.state == "idle":
            return False

        if self.state == "length":
            piece, self.buffer = (self.buffer[:self.left],
                                  self.buffer[self.left:])
            self.left -= len(piece)
            self.owner.piece(piece)
            return self.left == 0 and self.end()

        line, found, rest = self.buffer.partition(b"\r\n")

        if not found:
            return False

        size = int(line, 16)

        if len(rest) < size + 2:
            return False

        self.buffer = rest[size + 2:]

        if size == 0:
            return self.end()

        self.owner.piece(rest[:size])
        return True

    def head(self):
        head, found, rest = self.buffer.partition(b"\r\n\r\n")

        if not found:
            return False

        self.buffer = rest
        lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        self.status = int(lines[0].split()[1])
        self.keep = headers.get("connection") != "close"
        self.left = int(headers.get("content-length", 0))
        self.state = ("chunks" if "transfer-encoding" in headers
                      else "length")
        self.owner.began(self.status, headers)

        if self.state == "length" and self.left == 0:
            return self.end()

        return True

    def end(self):
        self.state = "idle"
        if not self.keep:
            self.close()
        self.owner.ended(True)
        return True


def message(method, uri, user, body=None, **headers):
    head = "%s %s HTTP/1.1\r\nHost: localhost\r\nX-User: %s\r\n" % (
        method, uri, user)

    if body is not None:
        body = json.dumps(body)
        head += ("Content-Type: application/json\r\n"
                 "Accept: application/json, text/event-stream\r\n"
                 "Content-Length: %d\r\n" % len(body))

    for name, value in headers.items():
        if value is not None:
            head += "%s: %s\r\n" % (name.replace("_", "-"), value)

    return (head + "\r\n" + (body or "")).encode()


def rpc(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


class Waiter:
    """one client, who waits for the task of its group"""

    # follows more than one task
    lasting = False

    # does not come back after its connection was cut
    deaf = False

    def __init__(self, group):
        self.group = group
        self.test = group.test
        self.channel = Channel(self.test.loop, self.test.server.port, self)
        self.task = None
        self.busy = False
        self.due = 0

    def begin(self, task):
        self.task = task
        self.fresh()

        if not self.busy:
            self.ask()

    def fresh(self):
        pass

    def ask(self):
        self.due = 0
        self.busy = True
        self.body = b""
        self.retry = self.test.random.uniform(0.05, 0.5)
        self.channel.send(self.request())

    def began(self, status, headers):
        self.status = status

    def piece(self, data):
        self.body += data

    def ended(self, whole):
        """what came is known to be all of it, or the connection was cut"""

        self.busy = False

        if not whole:
            # a server may close a connection while a request is on its way
            self.test.count["closed" if self.channel.reused
                            and not self.channel.status else "cut"] += 1
            if self.deaf:
                return
        elif self.status in self.expected:
            self.answered()
        else:
            self.wrong("%d %r" % (self.status, self.body[:200]))

        self.again()

    def again(self):
        if (self.task or self.lasting) and not self.test.over and not self.due:
            self.due = 1
            self.test.loop.after(self.retry, self.come_back)

    def come_back(self):
        self.due = 0
        if ((self.task or self.lasting) and not self.busy
                and not self.test.over):
            self.ask()

    def answered(self):
        pass

    def heard(self):
        if self.task:
            self.task = None
            self.group.heard(self)

    def wrong(self, what):
        self.test.wrong["%s: %s" % (self.kind, what)] += 1


class Poll(Waiter):
    kind = "poll"
    expected = (200, 204)

    def fresh(self):
        self.version = 0

    def request(self):
        return message("GET", "/mcp/tasks/%s/poll?version=%d&timeout=10000" % (
            self.task, self.version), self.group.name)

    def answered(self):
        self.retry = 0
        if self.status == 200:
            task = json.loads(self.body)
            self.version = task["version"]
            if task["taskId"] == self.task and task["status"] == "completed":
                self.heard()


class Result(Waiter):
    kind = "result"
    expected = (200,)

    def request(self):
        return message("POST", "/mcp", self.group.name,
                       rpc("tasks/result", taskId=self.task),
                       MCP_Protocol_Version="2025-11-25")

    def answered(self):
        # a stream, if it took long: the last message is the answer
        text = self.body.rpartition(b"\ndata: ")[2] or self.body
        self.retry = 0

        if not text.strip().startswith(b"{"):
            return                              # it ended with "retry" only

        answer = json.loads(text)

        if "result" in answer:
            self.heard()
        elif answer["error"]["code"] != -31012:
            self.wrong(json.dumps(answer["error"])[:200])


class Stream(Waiter):
    expected = (200,)

    def piece(self, data):
        self.body += data

        if self.status != 200:
            return

        while b"\n\n" in self.body:
            event, _, self.body = self.body.partition(b"\n\n")
            for line in event.split(b"\n"):
                name, _, value = line.partition(b": ")
                if name == b"id":
                    self.last = value.decode()
                elif name == b"retry":
                    self.retry = int(value) / 1000
                elif name == b"data" and value:
                    # the first event of a stream may have an id only
                    self.told(json.loads(value))


class Events(Stream):
    kind = "events"
    expected = (200, 204)

    def fresh(self):
        self.last = None

    def request(self):
        return message("GET", "/mcp/tasks/%s/events" % self.task,
                       self.group.name, Accept="text/event-stream",
                       Last_Event_ID=self.last)

    def told(self, task):
        if task["taskId"] == self.task and task["status"] == "completed":
            self.heard()

    def answered(self):
        # nothing more is to come, and it was not told of the end
        if self.status == 204 and self.task:
            self.wrong("204 before the end, after event %s" % self.last)


class Listen(Stream):
    kind = "listen"

    def request(self):
        self.last = None
        return message(
            "POST", "/mcp", self.group.name,
            rpc("subscriptions/listen", notifications={"taskIds": [self.task]},
                _meta={META + "protocolVersion": "2026-07-28",
                       META + "clientCapabilities":
                           {"extensions": {META + "tasks": {}}}}),
            MCP_Protocol_Version="2026-07-28",
            Mcp_Method="subscriptions/listen")

    def told(self, got):
        if (got.get("method") == "notifications/tasks"
                and got["params"]["taskId"] == self.task
                and got["params"]["status"] == "completed"):
            self.channel.close()
            self.busy = False
            self.heard()


class Owner(Stream):
    kind = "owner"
    lasting = True
    last = None

    def request(self):
        return message("GET", "/mcp/tasks/events", self.group.name,
                       Accept="text/event-stream", Last_Event_ID=self.last)

    def told(self, task):
        if task["taskId"] == self.task and task["status"] == "completed":
            self.heard()


class Session(Stream):
    kind = "session"
    lasting = True
    last = None

    def request(self):
        return message("GET", "/mcp", self.group.name,
                       Accept="text/event-stream", Last_Event_ID=self.last,
                       Mcp_Session_Id=self.group.session,
                       MCP_Protocol_Version="2025-11-25")

    def told(self, got):
        task = got.get("params", {})
        if task.get("taskId") == self.task and task["status"] == "completed":
            self.heard()


# of each kind, in a group of 20
KINDS = (Owner, Session) + 5 * (Poll, Events) + 4 * (Listen, Result)


class Group:
    """An owner with a session, who creates one task after the other; who waits
    for it; and who does the work, a moment before it is to end."""

    def __init__(self, test, number, size):
        self.test = test
        self.name = "g%d" % number
        self.session = None
        self.waiting = set()
        self.waiters = [kind(self) for kind in KINDS[:size]]
        self.channel = Channel(test.loop, test.server.port, self)
        self.life = self.live()
        self.wakes = 0
        self.resume(None)

    # what is asked for, and its answer: None if the connection was cut

    def began(self, status, headers):
        self.status, self.headers, self.body = status, headers, b""

    def piece(self, data):
        self.body += data

    def ended(self, whole):
        answer = None

        if whole:
            try:
                answer = json.loads(self.body or "{}")
            except ValueError:
                self.test.wrong["%s: %d %r" % (self.name, self.status,
                                               self.body[:200])] += 1

        # connections that were refused are tried again, in a while
        self.pause(0 if whole else 0.1, answer)

    def pause(self, seconds, value=None):
        self.wakes += 1
        mine = self.wakes
        self.test.loop.after(seconds, lambda: self.resume(value)
                             if mine == self.wakes else None)

    def resume(self, value):
        """until the next request, or the next pause"""

        try:
            wanted = self.life.send(value)
        except StopIteration:
            self.channel.close()
            return

        if isinstance(wanted, bytes):
            self.channel.send(wanted)
        else:
            self.pause(wanted)

    def live(self):
        yield self.test.random.uniform(0, self.test.life[0])

        while not self.session:
            answer = yield message(
                "POST", "/mcp", self.name,
                rpc("initialize", protocolVersion="2025-11-25",
                    capabilities={}, clientInfo={"name": "e", "version": "1"}),
                MCP_Protocol_Version="2025-11-25")
            if answer:
                self.session = self.headers["mcp-session-id"]

        while not self.test.stopping:
            self.ended_at = None
            task = yield from self.create()
            self.waiting = set(self.waiters)
            for waiter in self.waiters:
                waiter.begin(task)

            yield self.test.random.uniform(*self.test.life)
            done = yield from self.finish(task)
            self.ended_at = now()
            self.test.count["tasks"] += 1

            if self.waiting and done:
                yield self.test.limit           # heard() ends it

            for waiter in self.waiting:
                waiter.task = None
                waiter.channel.close()
                waiter.busy = False
                if done:
                    self.test.missed.append((waiter.kind, task))

        self.test.groups.discard(self)

    def heard(self, waiter):
        late = now() - self.ended_at if self.ended_at else 0
        self.test.late.append(late)
        self.test.count[waiter.kind] += 1
        self.waiting.discard(waiter)

        if self.ended_at and not self.waiting:
            self.pause(0)

    def create(self):
        while True:
            answer = yield message(
                "POST", "/mcp", self.name,
                rpc("tools/call", name=self.name, arguments={}, task={}),
                MCP_Protocol_Version="2025-11-25",
                Mcp_Session_Id=self.session)
            if answer and "result" in answer:
                return answer["result"]["task"]["taskId"]
            if answer:
                self.test.wrong["create: %s" % json.dumps(answer)[:200]] += 1
                yield 0.5

    def work(self, method, **params):
        return (yield message("POST", "/worker", self.name,
                              rpc("worker/" + method, **params)))

    def finish(self, task):
        """whether it has ended: its time may have been over before"""

        while True:
            answer = yield from self.work("claim", tools=[self.name],
                                          waitMs=500, leaseMs=LEASE * 1000)

            # also those whose creator did not get the answer
            for got in (answer or {}).get("result", {}).get("tasks", []):
                held = {"taskId": got["taskId"], "lease": got["lease"]}
                yield from self.work("progress", message="nearly", **held)
                done = None
                while done is None:
                    done = yield from self.work(
                        "complete", result={"content": []}, **held)
                if got["taskId"] == task and "result" in done:
                    return True

            # an answer that was cut may have been one
            got = yield message("GET", "/mcp/tasks/" + task, self.name)
            if (got or {}).get("status") == "completed":
                return True
            if got and self.status != 200:
                self.test.wrong["gone before its end: %d" % self.status] += 1
                return False
