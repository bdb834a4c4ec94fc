#!/usr/bin/env python3
"""Compares the module's performance with nginx itself and with other servers.

bench/performance.py NGINX MODULE TEST_MODULE FANOUT NODE SERVER DIRECTORY

MODULE is the production build.  TEST_MODULE is the test build.  It has
mcp_tasks_stub, which reads the request body and returns a fixed response, the
same as the module's: this is the floor.  It also measures how long the lock is
held.  FANOUT is the JSON output of bench/fanout.py.  SERVER is a server with
tasks made with the TypeScript SDK, run by NODE.

The compared sides take turns, ROUNDS (10) times for SECONDS (1) each, and the
best value of each figure counts: other programs on the machine can only make a
figure worse.  QUICK=1 is a short run: one round, and 100,000 tasks instead of
a million.  ONLY is a list of measures, as in ONLY=get,lock.

Also writes the figures to DIRECTORY/results.json for bench/report.py.  Exits
with status 1 if a limit is not met.
"""

import contextlib
import json
import os
import platform
import subprocess
import sys
import time

import answers
import fanout
from common import (Nginx, QUICK, cpu_of, die, free_port, others, progress,
                    was_busy)
from mcp import (Client, Connection, TASK_ID, claim, claims, complete, ids_of,
                 parts, question, session_of)
from report import Lines

ROUNDS = int(os.environ.get("ROUNDS") or (1 if QUICK else 10))
SECONDS = int(os.environ.get("SECONDS") or 1)
CONNECTIONS = 64
FEW = 1000
MANY = 100000 if QUICK else 1000000
LISTED = (100, 100000)
ASKED = 30000 if QUICK else 100000
ANSWERED = 2000 if QUICK else 10000
ERAS = ("legacy", "modern")
HERE = os.path.dirname(os.path.abspath(__file__))

ZONE = """
    mcp_tasks_zone  zone=tasks:%s;
    mcp_tasks_ttl   1h;
"""

OURS = """
    location /mcp {
        mcp_tasks        zone=tasks;
        mcp_tasks_tools  tools.json;
        mcp_tasks_owner  $remote_addr;
    }

    location /worker {
        mcp_tasks_worker  zone=tasks;
    }

    location /status {
        mcp_tasks_status  zone=tasks;
    }
"""

# of somebody else
OTHER = """
    location /other {
        mcp_tasks        zone=tasks;
        mcp_tasks_tools  tools.json;
        mcp_tasks_owner  other;
    }
"""

PROBE = """
    location /probe {
        mcp_tasks_probe  zone=tasks;
    }
"""

GATEWAY = """
    location /mcp {
        mcp_tasks              zone=tasks;
        mcp_tasks_pass         /upstream;
        mcp_tasks_owner        $remote_addr;
        mcp_tasks_max_running  0;
    }

    location = /upstream {
        internal;
        proxy_pass          http://behind/stub;
        proxy_http_version  1.1;
        proxy_set_header    Connection  "";
    }

    # the same without us
    location = /bare {
        proxy_pass          http://behind/stub;
        proxy_http_version  1.1;
        proxy_set_header    Connection  "";
    }
"""

BEHIND = """
    upstream behind {
        server     127.0.0.1:%d;
        keepalive  256;
    }
"""

# the answer of a server behind the gateway, around the id of the request
ANSWER = ('{"jsonrpc":"2.0","id":',
          ',"result":{"content":[{"type":"text","text":"%s"}]}}' % ("x" * 64))

# before what goes from the answer of one request into the next one
CYCLE = ['"taskId":"', '"lease":"']

# in a request, in place of a task id, a lease token, and a number
TASK, LEASE, NUMBER = "@" * 36, "@" * 16, "@" * 6


def server(name, workers=1, module=None, **how):
    how["main"] = "load_module %s;" % (module or MODULE)
    return Nginx(NGINX, os.path.join(DIRECTORY, name), workers, **how)


def ours(name, workers=1, zone="64m", **how):
    return server(name, workers, http=ZONE % zone,
                  server=OURS + how.pop("server", ""), **how)


def floor(name, workers, answers, **how):
    """answers: what to say at which path"""

    text = "".join("location = %s { mcp_tasks_stub %s; }\n"
                   % (path, " ".join("'%s'" % x for x in parts))
                   for path, parts in answers.items())
    return server(name, workers, module=TEST_MODULE, server=text, **how)


class Load:
    """wrk with these requests, which begins at once"""

    def __init__(self, port, requests, before=(), connections=CONNECTIONS,
                 threads=1, values=None):
        """values: what goes into the request, each of them once"""

        path = os.path.join(DIRECTORY, "requests-%d" % port)
        if before or connections != CONNECTIONS:
            path += "-%d" % connections
        with open(path, "wb") as f:
            for request in requests:
                f.write(b"%d\n%s\n" % (len(request), request))

        if values:
            before = ["--values", path + "-values"]
            with open(before[1], "w") as f:
                f.writelines(" ".join(words) + "\n" for words in values)

        self.wrk = subprocess.Popen(
            ["wrk", "-t%d" % threads, "-c%d" % connections, "-d%ds" % SECONDS,
             "--timeout", "30s", "-s",
             os.path.join(HERE, "load.lua"), "http://127.0.0.1:%d/" % port,
             "--", path] + list(before),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def wait(self):
        said = self.wrk.communicate()[0]
        words = [line.split()[1:] for line in said.splitlines()
                 if line.startswith("FIGURES")]

        if self.wrk.returncode != 0 or not words:
            die("wrk failed: %s" % said)

        got = {name: int(value)
               for name, value in (word.split("=") for word in words[0])}

        if got["failed"] or got["missed"] or got["requests"] == 0:
            die("requests failed: %s" % said)

        return got


def measure(port, pids, requests, before=(), values=None):
    """requests, requests per second, us of processor time for each, p99 in us

    There are as many threads of wrk as processes: if one had to keep two busy,
    it would be the one that is busy, and they would sleep between requests."""

    used = -cpu_of(pids)
    got = Load(port, requests, before, threads=len(pids), values=values).wait()
    used += cpu_of(pids)

    return {"rate": got["requests"] * 1e6 / got["us"],
            "cpu": used * 1e6 / got["requests"],
            "p99": got["p99"], "requests": got["requests"]}


def ask(nginx, request):
    """the answer, which must not be an error"""

    connection = Connection(nginx.port)
    header, body = connection.ask(request)
    connection.close()

    if b'"result"' not in body:
        die("not a result: %s" % body.decode())

    return header, body


def fill(port, client, n):
    """creates so many tasks, as quickly as it goes"""

    headers, body = parts(client.call())
    path = os.path.join(DIRECTORY, "body")
    with open(path, "wb") as f:
        f.write(body)

    said = subprocess.run(
        ["h2load", "--h1", "-n%d" % n, "-c%d" % min(32, n), "-d", path]
        + ["-H" + header for header in headers if header[:4] != "Host"]
        + ["http://127.0.0.1:%d%s" % (port, client.path)],
        stdout=subprocess.PIPE, text=True).stdout

    if " %d succeeded" % n not in said:
        die("could not create %d tasks: %s" % (n, said))


def session(nginx, client):
    return session_of(ask(nginx, client.initialize())[0])


def gets(client, ids):
    return [client.get(task) for task in ids]


class Turns:
    """Sides of a comparison that take turns, and the best of each"""

    def __init__(self):
        self.sides = {}

    def run(self, what, **sides):
        """each side is a function that measures it"""

        for number in range(ROUNDS):
            for side, function in sides.items():
                progress("%s, %s: round %d of %d"
                         % (what, side, number + 1, ROUNDS))
                for key, value in function().items():
                    self.sides.setdefault((what, side), {}) \
                              .setdefault(key, []).append(value)

        progress("")
        return [self.best(what, side) for side in sides]

    def best(self, what, side):
        return {key: (max if key == "rate" else min)(values)
                for key, values in self.sides[what, side].items()}


def check_same(nginx, request, stub, other):
    """the floor has to say as much as we do"""

    mine, its = ask(nginx, request), ask(stub, other)

    names = [[line.split(b":")[0] for line in header.split(b"\r\n")]
             for header, _ in (mine, its)]

    if names[0] != names[1] or len(mine[1]) != len(its[1]):
        die("the floor answers with something else: %s and %s" % (mine, its))


def sample(nginx, request):
    """an answer of ours, for the floor to repeat"""

    return (ask(nginx, request)[1].decode(),)


# ---------------------------------------------------------------- measures


def measure_get(lines, turns):
    """tasks/get beside the floor"""

    for workers in (1, 2):
        with contextlib.ExitStack() as stack:
            nginx = stack.enter_context(ours("ours-%d" % workers, workers))
            client = {era: Client("/mcp", era) for era in ERAS}
            client["legacy"].session = session(nginx, client["legacy"])
            fill(nginx.port, client["modern"], FEW)
            ids = ids_of(nginx.port, client["legacy"])

            answers = {"/" + era: sample(nginx, client[era].get(ids[0]))
                       for era in ERAS}
            stub = stack.enter_context(floor("floor-%d" % workers, workers,
                                             answers))

            for era in ERAS:
                # to the floor go the same requests, on another path
                bare = Client("/%s" % era, era,
                              client[era].session)
                sent, plain = gets(client[era], ids), gets(bare, ids)
                check_same(nginx, sent[0], stub, plain[0])

                what = "tasks/get, %s, %d process%s" % (era, workers,
                                                        "es" * (workers > 1))
                mine, its = turns.run(
                    what,
                    ours=lambda: measure(nginx.port, nginx.children(), sent),
                    floor=lambda: measure(stub.port, stub.children(), plain))

                lines.rate(what, "floor", mine, its, 0.85, cpu=1.15, p99=1.5)


def measure_many(lines, turns):
    """the same in a large zone"""

    with contextlib.ExitStack() as stack:
        few = stack.enter_context(ours("few"))
        many = stack.enter_context(ours("many", zone="1600m "
                                        "max_tasks=%d" % (MANY + 10)))
        client = Client("/mcp", "modern")
        requests = {}

        for nginx, n in ((few, FEW), (many, MANY)):
            progress("creating %d tasks" % n)
            fill(nginx.port, client, n)
            ids = ids_of(nginx.port, client)
            if len(ids) != n:
                die("%d tasks of %d are listed" % (len(ids), n))

            # out of order, all over the zone, and not too many for wrk
            step = max(1, n // 100000)
            ids = [ids[i * 7919 % n] for i in range(0, n, step)]
            requests[nginx] = gets(client, ids)

        what = "tasks/get, modern, {:,} tasks".format(MANY)
        mine, its = turns.run(
            what, **{side: lambda nginx=nginx: measure(
                nginx.port, nginx.children(), requests[nginx])
                     for side, nginx in (("many", many), ("few", few))})
        lines.rate(what, "{:,}".format(FEW), mine, its, 0.9)


def measure_create(lines, turns):
    """creating a task; and claiming and completing those tasks"""

    with contextlib.ExitStack() as stack:
        with ours("create") as nginx:
            client = {era: Client("/mcp", era) for era in ERAS}
            answers = {"/" + era: sample(nginx, client[era].call())
                       for era in ERAS}
            for path, request in (("/claim", claim("/worker")),
                                  ("/complete", None)):
                if request is None:
                    found = json.loads(answers["/claim"][0])
                    found = found["result"]["tasks"][0]
                    request = complete("/worker", found["taskId"],
                                       found["lease"])
                answers[path] = sample(nginx, request)

        stub = stack.enter_context(floor("floor-create", 1, answers))

        def create(era, cycle=None):
            # a new zone each time: it is not to grow from round to round
            with ours("create", zone="512m") as nginx:
                mine = Client("/mcp", era)
                if era == "legacy":
                    mine.session = session(nginx, mine)
                got = measure(nginx.port, nginx.children(), [mine.call()])
                return (measure(nginx.port, nginx.children(), cycle, CYCLE)
                        if cycle else got)

        for era in ERAS:
            bare = Client("/%s" % era, era, "x" * 48
                          if era == "legacy" else None)
            what = "tools/call that creates a task, %s" % era
            mine, its = turns.run(
                what, ours=lambda: create(era),
                floor=lambda: measure(stub.port, stub.children(),
                                      [bare.call()]))
            lines.rate(what, "floor", mine, its, 0.6)

        what = "claim and complete"
        cycle = [claim("/worker"), complete("/worker", TASK, LEASE)]
        plain = [claim("/claim"), complete("/complete", TASK, LEASE)]
        mine, its = turns.run(
            what, ours=lambda: create("legacy", cycle),
            floor=lambda: measure(stub.port, stub.children(), plain, CYCLE))
        lines.rate(what, "floor", mine, its, 0.5)


def fill_in(request, words):
    """the request with these in the places that are left open for them"""

    for word in words:
        head, _, tail = request.partition(b"@")
        request = head + word.encode() + tail.lstrip(b"@")

    return request


def asked(nginx):
    """the number of tasks that have a question"""

    return json.loads(nginx.get("/status"))["tasks"]["input_required"]


def once(lines, turns, what, limit, prepare, request, path, change):
    """a request that cannot be repeated, beside the floor

    request() makes it for a path, with places left open.  prepare() returns
    so many times what goes there, on a server that was just started.  change
    is by how much a request changes the number of tasks with a question."""

    def load():
        with ours("once", zone="512m") as nginx:
            values = prepare(nginx, ASKED)
            before = asked(nginx)
            got = measure(nginx.port, nginx.children(), [request(path)],
                          values=values)

            # the last ones may have been cut off
            done = asked(nginx) - before
            if abs(done - change * got["requests"]) > CONNECTIONS:
                die("%s: %d requests changed %d tasks"
                    % (what, got["requests"], done))

            return got

    with contextlib.ExitStack() as stack:
        with ours("once") as nginx:
            first, second = prepare(nginx, 2)[:2]
            answer = sample(nginx, fill_in(request(path), first))
            stub = stack.enter_context(floor("floor-once", 1,
                                             {"/stub": answer}))
            check_same(nginx, fill_in(request(path), second),
                       stub, fill_in(request("/stub"), second))

        mine, its = turns.run(
            what, ours=load,
            floor=lambda: measure(stub.port, stub.children(),
                                  [request("/stub")], values=[first] * ASKED))
        lines.rate(what, "floor", mine, its, limit)


def claimed(nginx, client, n):
    """that many tasks that a worker has claimed, with their lease tokens"""

    fill(nginx.port, client, n)
    connection = Connection(nginx.port)
    tasks = claims(connection, "/worker")
    connection.close()
    return tasks


def measure_ask(lines, turns):
    client = Client("/mcp", "modern", elicitation={})

    once(lines, turns, "worker/ask", 0.5,
         lambda nginx, n: claimed(nginx, client, n),
         lambda path: question(path, TASK, LEASE), "/worker", 1)


def measure_update(lines, turns):
    client = {path: Client(path, "modern", elicitation={})
              for path in ("/mcp", "/stub")}

    def prepare(nginx, n):
        tasks = claimed(nginx, client["/mcp"], n)
        got = Load(nginx.port, [question("/worker", TASK, LEASE)],
                   values=tasks).wait()
        return [(task, task) for task, _ in tasks[:got["requests"]]]

    once(lines, turns, "tasks/update with an answer, modern", 0.5, prepare,
         lambda path: client[path].update(TASK), "/mcp", -1)


def measure_progress(lines, turns):
    """of a few tasks in turns; progress never decreases"""

    client = {path: Client(path, "modern") for path in ("/mcp", "/stub")}
    tokens = ["token-%06d" % i for i in range(FEW)]
    number = b'"progress":'

    def prepare(nginx, n):
        connection = Connection(nginx.port)
        for token in tokens:
            connection.ask(client["/mcp"].call(token=token))
        claims(connection, "/worker")
        connection.close()
        return [(token, str(100000 + i))
                for i in range(-(-n // FEW)) for token in tokens]

    def request(path):
        text = client[path].progress("@" * len(tokens[0]), 111111)
        return text.replace(number + b"111111", number + NUMBER.encode())

    once(lines, turns, "tasks/progress, modern", 0.6, prepare, request,
         "/mcp", 0)


def measure_answer(lines, turns):
    """from the client to the worker, which waits for it"""

    client = Client("/mcp", "modern", elicitation={})

    for workers in (1, 2):
        what = ("answer to a waiting worker, %d process%s"
                % (workers, "es" * (workers > 1)))

        with ours("answer", workers) as nginx:
            progress(what)
            tasks = claimed(nginx, client, ANSWERED)
            got = answers.measure(nginx.port, client, tasks, CONNECTIONS)
            progress("")

        lines.add(what + ": p99", None, "ms", got["p99"] / 1000, None, "<=", 5)
        lines.note("%s: p50 %.2f ms, maximum %.2f ms of %d answers, with %d"
                   " workers that wait"
                   % (what, got["p50"] / 1000, got["max"] / 1000, len(tasks),
                      CONNECTIONS))


def measure_list(lines, turns):
    with ours("list", zone="256m", server=OTHER) as nginx:
        clients = [Client(path, "modern") for path in ("/other", "/mcp")]

        for client, n in zip(clients, LISTED):
            progress("creating %d tasks" % n)
            fill(nginx.port, client, n)

        what = "tasks/list, page of 50 of {:,} tasks".format(LISTED[1])
        its, mine = turns.run(what, **{
            client.path: lambda client=client: measure(
                nginx.port, nginx.children(), [client.list()])
            for client in clients})
        lines.rate(what, "of %d" % LISTED[0], mine, its, 0.9)


def measure_sdk(lines, turns):
    """the TypeScript SDK's servers, each a process of its own, and ours"""

    best = {}

    for path in ("/json", "/sse", "/bare"):
        port = free_port()
        log = open(os.path.join(DIRECTORY, "sdk.log"), "w")
        node = subprocess.Popen([NODE, SERVER, str(port)], stdout=log,
                                stderr=log)

        try:
            for _ in range(200):
                time.sleep(0.05)
                with contextlib.suppress(OSError):
                    connection = Connection(port)
                    break
            else:
                die("%s did not start: see %s/sdk.log" % (SERVER, DIRECTORY))

            client = Client(path, "legacy")
            header, _ = connection.ask(client.initialize())
            client.session = session_of(header)

            _, body = connection.ask(client.call())
            task = TASK_ID.search(body).group(1).decode()

            # calls of a session are told from each other by their ids
            sides = {"tasks/get": [client.get(task) for _ in range(FEW)],
                     "create": [client.call() for _ in range(FEW)]}

            for what, requests in sides.items():
                its, = turns.run("SDK %s, %s" % (path, what), sdk=lambda:
                                 measure(port, [node.pid], requests))
                if what not in best or its["cpu"] < best[what]["cpu"]:
                    best[what] = its

        finally:
            node.kill()
            node.wait()
            log.close()

    with ours("sdk", zone="512m") as nginx:
        client = Client("/mcp", "legacy")
        client.session = session(nginx, client)
        task = TASK_ID.search(ask(nginx, client.call())[1]).group(1).decode()
        sides = {"tasks/get": [client.get(task)], "create": [client.call()]}
        mine = {what: turns.run("ours, %s" % what, ours=lambda: measure(
                    nginx.port, nginx.children(), requests))[0]
                for what, requests in sides.items()}

    for what, its in best.items():
        lines.add("%s, per second of CPU time" % what,
                  "TypeScript SDK", "1/s", 1e6 / mine[what]["cpu"],
                  1e6 / its["cpu"], ">=", 22)


def measure_gateway(lines, turns):
    with contextlib.ExitStack() as stack:
        stub = stack.enter_context(floor("behind", 1, {"/stub": ANSWER}))

        def gateway():
            return server("gateway", http=ZONE % "512m" + BEHIND % stub.port,
                          server=GATEWAY)

        def load(requests, before=()):
            # a new zone each time: it is not to grow from round to round
            with gateway() as nginx:
                return measure(nginx.port, nginx.children(), requests, before)

        through = Client("/mcp", "legacy")
        bare = Client("/bare", "legacy")

        with gateway() as nginx:
            for client in (through, bare):
                ask(nginx, client.call(task=False))

        what = "gateway, call passed through"
        mine, its = turns.run(
            what, ours=lambda: load([through.call(task=False)]),
            bare=lambda: load([bare.call(task=False)]))
        lines.rate(what, "proxy_pass", mine, its, 0.9)

        # A call, its task, and what became of it: two requests of the client,
        # which has to look at the answers, those of the bare call as well.
        what = "gateway, background call, full cycle"
        life = [through.call(), through.result("@" * 36)]
        made = ['"task":{"taskId":"']
        mine, its = turns.run(
            what, ours=lambda: load(life, made),
            bare=lambda: load([bare.call(task=False)], made))
        mine = dict(mine, rate=mine["rate"] / 2, cpu=mine["cpu"] * 2)
        lines.rate(what, "proxy_pass", mine, its, 0.5)


def measure_lock(lines, turns):
    """while two processes do all there is to do, as fast as they can"""

    clocks = {"wall": time.CLOCK_MONOTONIC,
              "cpu": time.CLOCK_THREAD_CPUTIME_ID}
    held = {}

    with ours("lock", 2, zone="1024m", module=TEST_MODULE, server=PROBE) as nginx:
        client = Client("/mcp", "legacy")
        fill(nginx.port, client, FEW)
        ids = ids_of(nginx.port, client)

        for name, clock in clocks.items():
            progress("lock, by the clock %s" % name)
            nginx.get("/probe?op=hold&clock=%d" % clock)
            before, start = nginx.cpu(), time.monotonic()

            loads = [Load(nginx.port, [client.call()], connections=16),
                     Load(nginx.port, gets(client, ids) + [client.list()] * 5,
                          connections=31),
                     Load(nginx.port, [claim("/worker"),
                                       complete("/worker", TASK, LEASE)],
                          CYCLE, connections=17)]
            for load in loads:
                load.wait()

            held[name] = json.loads(nginx.get("/probe?op=hold&clock=0"))
            held[name]["cpu"] = nginx.cpu() - before
            held[name]["seconds"] = time.monotonic() - start

    # Who is interrupted while it holds the lock is no measure of us: so holds
    # that were long by the clock on the wall count as the clock of the process
    # saw them.  That one alone would not do, for asking it takes longer than
    # most holds.
    cpu, wall = held["cpu"], held["wall"]
    each = ((wall["held"] - wall["rare"] - wall["clock"]) / wall["times"]
            + cpu["rare"] / cpu["times"])
    busy = each * wall["times"] / 1e9

    lines.add("lock held by two processes at full load, share", None, "share",
              busy / wall["seconds"], None, "<=", 0.1)
    lines.add("lock, longest hold", None, "ms", cpu["longest"] / 1e6, None,
              "<=", 1)
    lines.note("the lock was taken %d times, for %.2f us on average; with"
               " clients on another machine and a processor for each of the two"
               " processes, it would be held for %.2f of the time"
               % (wall["times"], each / 1e3, busy / (wall["cpu"] / 2)))
    lines.note("the longest hold in wall-clock time was %.2f ms, including"
               " time when other programs had the processor"
               % (wall["longest"] / 1e6))


def measure_bytes(lines, turns):
    """what a task with a result of 1 KB takes of the zone"""

    n, size = 20000, 1024

    with ours("bytes", zone="128m") as nginx:
        client = Client("/mcp", "modern")

        def status():
            return json.loads(nginx.get("/status"))

        def touched():
            """of the zone, in the worker"""
            with open("/proc/%s/smaps" % nginx.children()[0]) as f:
                for area in f.read().split("VmFlags")[:-1]:
                    if "/dev/zero" in area and " 131072 kB" in area:
                        return int(area.split("\nRss:")[1].split()[0]) * 1024
            die("there is no zone in /proc/PID/smaps")

        def finish():
            connection = Connection(nginx.port)
            while True:
                found = json.loads(connection.ask(claim("/worker", 16))[1])
                if not found["result"]["tasks"]:
                    break
                for task in found["result"]["tasks"]:
                    connection.ask(complete("/worker", task["taskId"],
                                            task["lease"], size))
            connection.close()

        # what is touched once and for all
        fill(nginx.port, client, 100)
        finish()

        before, payload = touched(), status()["payloadBytes"]
        progress("completing %d tasks" % n)
        fill(nginx.port, client, n)
        finish()
        progress("")

        now = status()
        payload = (now["payloadBytes"] - payload) / n
        each = (touched() - before) / n + 12     # 12: of the indexes, at most

    lines.add("overhead of a task with a 1 KB result (payload %d B)"
              % payload, None, "B", each - payload, None, "<=", 768)


def take_fanout(lines, turns):
    with open(FANOUT) as f:
        cells = json.load(f)

    for cell in cells:
        mine, its = cell["ours"], cell["nchan"]
        one = cell["tasks"] == 1
        what = ("events to %s readers, %s, %d process%s"
                % ("{:,}".format(cell["readers"]),
                   "one task" if one else "a task each", cell["workers"],
                   "es" * (cell["workers"] > 1)))

        lines.add(what + ": CPU", "nchan", "us", mine["cpu"], its["cpu"],
                  "<=", fanout.CPU_ONE if one else fanout.CPU_EACH)
        lines.add(what + ": p99", "nchan", "ms", mine["p99"] / 1000,
                  its["p99"] / 1000, "<=",
                  max(fanout.P99_RATIO, 1 + fanout.P99_MORE / its["p99"]))

    most = [cell for cell in cells
            if cell["readers"] == max(c["readers"] for c in cells)]

    for beside, whose, limit in (
            ("nchan", "nchan", fanout.MEMORY_NCHAN),
            ("held", "a held request", fanout.MEMORY_HELD)):
        cell = max(most, key=lambda c: c["ours"]["mem"] / c[beside]["mem"])
        lines.add("memory per idle stream", whose, "B",
                  cell["ours"]["mem"], cell[beside]["mem"], "<=", limit)


def model():
    with open("/proc/cpuinfo") as f:
        names = [line.split(":")[1].strip() for line in f
                 if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main():
    os.makedirs(DIRECTORY, exist_ok=True)
    started, before = time.monotonic(), others()
    lines, turns = Lines(), Turns()

    measures = {"get": measure_get, "many": measure_many,
                "create": measure_create, "list": measure_list,
                "progress": measure_progress, "ask": measure_ask,
                "update": measure_update, "answer": measure_answer,
                "sdk": measure_sdk, "fanout": take_fanout,
                "bytes": measure_bytes, "gateway": measure_gateway,
                "lock": measure_lock}

    lines.order = list(measures)
    only = (os.environ.get("ONLY") or ",".join(measures)).split(",")

    for name in only:
        if name not in measures:
            die("ONLY is a list of %s" % ", ".join(measures))

    for name in only:
        lines.begin(name)
        measures[name](lines, turns)

    passed = time.monotonic() - started

    lines.end("%d round%s of %d s, %d s in total, on %d processors: %s"
              % (ROUNDS, "s" * (ROUNDS > 1), SECONDS, passed, os.cpu_count(),
                 model()),
              was_busy((others() - before) / passed))
    lines.print()
    lines.save(os.path.join(DIRECTORY, "results.json"))

    sys.exit(1 if lines.missed() else 0)


if __name__ == "__main__":
    if len(sys.argv) != 8:
        sys.exit(__doc__)
    NGINX, MODULE, TEST_MODULE, FANOUT, NODE, SERVER, DIRECTORY = \
        (os.path.abspath(path) for path in sys.argv[1:])
    main()
