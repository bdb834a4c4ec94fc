"""Clients and workers who do everything that can be done to tasks, at random,
and keep a ledger of it."""

import json
import random
import threading

from ledger import ENDED, GONE
from nginx import Gone, decode

# nobody but who created them knows of "solo"; leases of "short" run out, and
# "race" is cancelled while others work on it
TOOLS = {
    "solo": {},
    "work": {"lease": "1h", "backoff": 1, "attempts": 100},
    "race": {"lease": "1h", "backoff": 1, "attempts": 100},
    "short": {"lease": 200, "backoff": 1, "attempts": 200},
}

OWNERS = ("ann", "bob")

# what a zone has room for: there are no more tasks than that, about 4 KB each
TASKS = 30000

# of something that another one was faster with
LATE = ("task_terminal", "lease_lost", "task_not_found", "task_state_invalid")


class Refused(Exception):
    pass


class Workload:
    """n threads, until stop() or until the server is gone"""

    def __init__(self, server, ledger, seed, n=8, prefix="k"):
        self.server = server
        self.ledger = ledger
        self.prefix = prefix
        self.random = random.Random(seed)
        self.stopping = threading.Event()
        self.seeds = [self.random.random() for _ in range(n)]
        self.threads = []

        # tasks that somebody may take, each in one list
        self.held, self.asks, self.solo, self.over = [], [], [], []

        for task in ledger.tasks.values():
            if task.state.phase != GONE:
                self.put(task)

    def put(self, task):
        """for whoever wants to go on with it"""

        phase = task.state.phase

        with self.ledger.lock:
            if task.loose or phase == GONE:
                return
            if phase in ENDED:
                self.over.append(task)
            elif task.tool == "solo" or (
                    phase in ("running", "input_required")
                    and task.state.lease is None):
                self.solo.append(task)
            elif phase == "running":
                self.held.append(task)
            elif phase == "input_required":
                self.asks.append(task)

    def take(self, tasks, rng):
        with self.ledger.lock:
            if not tasks:
                return None
            i = rng.randrange(len(tasks))
            tasks[i], tasks[-1] = tasks[-1], tasks[i]
            return tasks.pop()

    def start(self):
        self.threads = [threading.Thread(target=self.run, args=(seed,))
                        for seed in self.seeds]
        for thread in self.threads:
            thread.start()

    def join(self):
        for thread in self.threads:
            thread.join()

    def stop(self):
        self.stopping.set()
        self.join()

    def run(self, seed):
        client = Client(self, random.Random(seed))

        try:
            while not self.stopping.is_set():
                client.step()
        except Gone:
            pass
        except Exception as e:
            self.ledger.wrong.append("%s: %s" % (type(e).__name__, e))
        finally:
            client.connection.close()


class Client:
    def __init__(self, load, rng):
        self.load = load
        self.ledger = load.ledger
        self.random = rng
        self.connection = load.server.connect()

    def text(self):
        size = self.random.choice((1, 10, 100, 100, 300, 1000, 5000))
        if self.random.random() < 0.01:
            size = 40000
        return "%x" % self.random.getrandbits(4 * size)

    def step(self):
        if len(self.ledger.tasks) > TASKS:
            return self.random.choice((self.claim, self.work, self.answer))()

        what = self.random.choices(
            (self.create, self.claim, self.work, self.answer, self.end_solo,
             self.delete, self.race, self.short),
            (20, 10, 40, 8, 4, 4, 6, 4))[0]
        what()

    # over HTTP

    def post(self, path, body, task):
        status, _, answer = self.connection.request(
            "POST", "/mcp/tasks" + path, json.dumps(body).encode(),
            task.owner)

        if status not in (200, 201):
            raise Refused("%s: %d %s" % (path, status, answer.decode()))
        return decode(answer)

    def create(self, tool=None, text=None):
        tool = tool or self.random.choices(("work", "solo"), (4, 1))[0]
        task = self.ledger.new(self.load.prefix, tool,
                               self.random.choice(OWNERS),
                               tool in ("race", "short"))
        entry = task.states[0]
        made = self.post("", {"tool": tool, "arguments": {
            "key": task.key, "text": text or self.text()}}, task)

        self.ledger.created(task, entry, made["taskId"])

        if tool == "solo":
            self.load.put(task)
        return task

    def change(self, task, request, **change):
        """what the request answers, once it has changed the task"""

        entry = self.ledger.ask(task, **change)
        answer = request()

        if "error" in answer:
            raise Refused("%s of %s" % (answer, task.told()))

        with self.ledger.lock:
            self.ledger.done(entry)

            # unless somebody has claimed it already
            if task.states[-1] is entry:
                self.load.put(task)

    # what workers do

    def take(self, tool, n):
        with self.ledger.lock:
            self.ledger.lost += n

        answer = self.connection.work(
            "claim", tools=[tool], max=n,
            waitMs=self.random.choice((0, 0, 20)))

        if "error" in answer:
            raise Refused("claim: %s" % answer)

        # nginx goes on if we die here, but then it is nobody's
        with self.ledger.lock:
            self.ledger.lost -= n
            return [(self.ledger.claimed(
                        work["arguments"]["key"], work["taskId"],
                        work["lease"], work["attempt"]), work)
                    for work in answer["result"]["tasks"]]

    def claim(self):
        for task, _ in self.take("work", self.random.choice((1, 1, 3))):
            self.load.put(task)

    def tell(self, task, method, **params):
        return self.connection.work(method, taskId=task.id,
                                    lease=task.lease, **params)

    def result(self):
        return {"content": [{"type": "text", "text": self.text()}],
                "n": self.random.getrandbits(90)}

    def work(self):
        task = self.load.take(self.load.held, self.random)
        if task is None:
            return

        what = self.random.choices(
            ("progress", "heartbeat", "ask", "complete", "fail", "retry",
             "release", "cancel"), (5, 3, 3, 8, 2, 1, 1, 1))[0]

        if what == "progress":
            self.change(task, lambda: self.tell(task, what,
                                                message=self.text()[:200]))
        elif what == "heartbeat":
            answer = self.tell(task, what)
            if "error" in answer:
                raise Refused("%s of %s" % (answer, task.told()))
            self.load.put(task)
        elif what == "ask":
            asked = task.state.asked + 1
            self.change(task, lambda: self.tell(
                task, what, inputRequests={"q%d" % asked: {
                    "method": "elicitation/create",
                    "params": {"message": self.text(), "requestedSchema": {
                        "type": "object", "properties": {}}}}}),
                phase="input_required", asked=asked)
        elif what == "complete":
            result = self.result()
            self.change(task, lambda: self.tell(task, what, result=result),
                        phase="completed", result=json.dumps(result).encode(),
                        lease=None)
        elif what == "fail":
            error = {"code": -32050, "message": self.text()}
            self.change(task, lambda: self.tell(task, what, error=error),
                        phase="failed", result=json.dumps(error).encode(),
                        lease=None)
        elif what == "retry":
            error = {"code": -32050, "message": "again"}
            self.change(task, lambda: self.tell(
                task, "fail", error=error, retryable=True, delayMs=1),
                phase="queued", lease=None)
        elif what == "release":
            # then the next attempt has the same number
            self.ledger.claims.pop((task.id, task.state.attempt), None)
            self.change(task, lambda: self.tell(task, what), phase="queued",
                        attempt=task.state.attempt - 1, lease=None)
        else:
            self.cancel(task)

    def answer(self):
        task = self.load.take(self.load.asks, self.random)
        if task is None:
            return

        self.change(task, lambda: self.post(
            "/%s/input" % task.id, {"inputResponses": {
                "q%d" % task.state.asked: {"action": "accept", "content": {
                    "text": self.text()}}}}, task), phase="running")

    def cancel(self, task):
        self.change(task, lambda: self.post("/%s/cancel" % task.id, {}, task),
                    phase="cancelled", lease=None)

    def end_solo(self):
        task = self.load.take(self.load.solo, self.random)
        if task:
            self.cancel(task)

    def delete(self):
        task = self.load.take(self.load.over, self.random)
        if task is None:
            return

        entry = self.ledger.ask(task, phase=GONE)
        _, _, answer = self.connection.request(
            "GET", "/probe?op=delete&id=%s" % task.id)

        if b'"reason":"ok"' not in answer:
            raise Refused("delete: %s" % answer.decode())

        # that does not wait, but nothing is saved before what came before it
        self.create("solo")
        self.ledger.done(entry)

    # what several do at once

    def end(self, task, phase, result, request):
        """whether it is this one that has ended it"""

        try:
            answer = request()
        except Gone:
            self.ledger.ended(task, phase, result, False)
            raise
        except Refused as e:
            answer = {"error": str(e)}

        if "error" not in answer:
            self.ledger.ended(task, phase, result, True)
        elif not any(reason in str(answer) for reason in LATE):
            raise Refused("%s of %s" % (answer, task.told()))

    def race(self):
        task = self.create("race")

        if self.random.random() < 0.5:
            for other, work in self.take("race", 2):
                result = self.result()
                self.end(other, "completed", json.dumps(result).encode(),
                         lambda: self.connection.work(
                             "complete", taskId=work["taskId"],
                             lease=work["lease"], result=result))

        self.end(task, "cancelled", None, lambda: self.post(
            "/%s/cancel" % task.id, {}, task))

    def short(self):
        """somebody takes it, and perhaps lets go of it"""

        if self.random.random() < 0.5:
            self.create("short")

        for task, work in self.take("short", 1):
            if self.random.random() < 0.5:
                continue

            result = self.result()
            self.end(task, "completed", json.dumps(result).encode(),
                     lambda: self.connection.work(
                         "complete", taskId=work["taskId"],
                         lease=work["lease"], result=result))
