#!/usr/bin/env python3
"""Compares event streams with many readers in this module and in nchan.

bench/fanout.py NGINX MODULE NCHAN CLIENT DIRECTORY

Both modules run in the same nginx binary and take turns.  Other programs on
the machine can only make a figure worse, so each figure is the best of ROUNDS
(3) rounds.  bench/fanout.c is the client, and describes the measurements.
QUICK=1 is a short run: 1,000 readers, one round.  JSON=FILE also writes the
figures to that file.

A third server only holds requests, without additional modules, to measure the
basic cost of a connection.

Exits with status 1 if a limit is not met.
"""

import json
import os
import resource
import subprocess
import sys
import time

from common import Nginx, QUICK, die, others, progress, was_busy

ROUNDS = int(os.environ.get("ROUNDS") or (1 if QUICK else 3))
WORKERS = (1, 2)
READERS = (1000,) if QUICK else (1000, 10000)

# Per number of readers, and whether all read one task: how many changes while
# nobody reads, how many then, how many us apart, and how many as fast as they
# go.  What it costs to publish is to be seen only where each event is a change
# of its own.  A server has to be done with
# a change long before the next one is due, else latency would be the length of
# a queue: so with one task the interval grows with the number of readers.
PLAN = {
    (1000, True): (0, 60, 25000, 60),
    (1000, False): (4000, 6000, 250, 8000),
    (10000, True): (0, 15, 200000, 10),
    (10000, False): (4000, 10000, 250, 10000),
}

# what must hold
CPU_EACH = 0.7          # of nchan's, where each reader has its own task
CPU_ONE = 1.0           # of nchan's, where all read one task
MEMORY_NCHAN = 0.9
MEMORY_HELD = 1.15
P99_RATIO = 1.1         # of nchan's, or this much more:
P99_MORE = 1000         # us

OURS = {
    "main": "load_module %(module)s;",
    "http": "mcp_tasks_zone  zone=tasks:64m;",
    "status": "stub_status",
    "server": """
        location /mcp {
            mcp_tasks              zone=tasks;
            mcp_tasks_tools        tools.json;
            mcp_tasks_max_waiters  20000 zone=40000;
        }

        location /worker {
            mcp_tasks_worker  zone=tasks;
        }
    """,
}

# One message is kept for each channel, so that a reader who comes gets the
# present state at once, as with our streams.  Not to keep any is no faster.  A
# reader then takes less memory, but only until its first message.  The
# channel's name comes from an argument, because that spares nchan the regular
# expression that its documentation uses.
NCHAN = {
    "main": "load_module %(nchan)s;",
    "http": "nchan_shared_memory_size  256m;",
    "status": "nchan_stub_status",
    "server": """
        location = /pub {
            nchan_publisher              http;
            nchan_channel_id             $arg_id;
            nchan_message_buffer_length  1;
        }

        location = /sub {
            nchan_subscriber  eventsource;
            nchan_channel_id  $arg_id;
        }
    """,
}

# One request in a minute, and all others wait for their turn.
HELD = {
    "main": "",
    "http": "limit_req_zone  held zone=held:1m rate=1r/m;",
    "status": "stub_status",
    "server": """
        location = /held {
            limit_req  zone=held burst=20000;
            stub_status;
        }
    """,
}

SERVERS = {"ours": OURS, "nchan": NCHAN, "held": HELD}

class Server(Nginx):
    """nginx with one of the configurations, while in a "with" block"""

    def __init__(self, name, workers):
        how = SERVERS[name]
        super().__init__(
            NGINX, os.path.join(DIRECTORY, name), workers,
            main=how["main"] % {"module": MODULE, "nchan": NCHAN_MODULE},
            http=how["http"],
            server="location = /status { %s; }\n%s"
                   % (how["status"], how["server"]))

    def status(self):
        return self.get("/status")

    def client(self, name, readers, tasks, extra):
        pids = ",".join([str(self.nginx.pid)] + self.children())
        got = subprocess.run(
            [CLIENT, name, "-p", str(self.port), "-n", str(readers),
             "-k", str(tasks), "-P", pids] + [str(x) for x in extra],
            stdout=subprocess.PIPE, text=True)

        if got.returncode != 0:
            die("%s with %d workers, %d readers, %d tasks failed: see %s"
                % (name, self.workers, readers, tasks, self.dir))

        words = (word.split("=") for word in got.stdout.split())
        return {name: float(value) for name, value in words}


def measure(name, workers, readers, tasks, size):
    extra = []

    if name != "held":
        unread, changes, interval, fast = PLAN[readers, tasks == 1]
        extra = ["-u", unread, "-m", changes, "-i", interval, "-f", fast,
                 "-b", size]

    with Server(name, workers) as server:
        return server.client(name, readers, tasks, extra)


def measure_all():
    """{(workers, readers, tasks): {server: {name: [values of rounds]}}}"""

    cells = {(w, n, k): {} for w in WORKERS for n in READERS for k in (1, n)}
    size = 300

    for number in range(ROUNDS):
        for cell, results in cells.items():
            for name in ("ours", "nchan", "held"):
                # what is merely held is one thing for any number of tasks,
                # and always the same
                if name == "held" and (number or cell[2] != 1):
                    continue

                progress("round %d of %d: %s, %d workers, %d readers, "
                         "%d tasks" % ((number + 1, ROUNDS, name) + cell))

                values = measure(name, *cell, size)

                for key, value in values.items():
                    results.setdefault(name, {}).setdefault(key, []) \
                           .append(value)

                # the others' messages are as long as our events
                if name == "ours":
                    size = round(values["data"])

    progress("")

    for (workers, readers, tasks), results in cells.items():
        results.setdefault("held", cells[workers, readers, 1]["held"])

    return cells


def figures(cells):
    """the same with one figure for each name"""

    return {cell: {name: {key: (max if key == "fast_rate" else min)(values)
                          for key, values in result.items()}
                   for name, result in results.items()}
            for cell, results in cells.items()}


COLUMNS = (
    ("p50", "p50 ms", "%.3f", 1000),
    ("p99", "p99 ms", "%.3f", 1000),
    ("max", "max ms", "%.3f", 1000),
    ("cpu", "us/event", "%.2f", 1),
    ("publish", "publish", "%.2f", 1),
    ("fast_cpu", "at full", "%.2f", 1),
    ("fast_rate", "events/s", "%.0f", 1),
    ("mem", "B/reader", "%.0f", 1),
)


def name_of(cell):
    return ", ".join("%d %s%s" % (n, what, "s" * (n > 1)) for n, what
                     in zip(cell, ("worker", "reader", "task")))


def print_table(cells):
    for cell, results in cells.items():
        print("%s\n%6s" % (name_of(cell), ""),
              " ".join("%9s" % title for _, title, _, _ in COLUMNS))

        for name in ("ours", "nchan", "held"):
            print("%6s" % name, " ".join(
                "%9s" % (text % (results[name][key] / unit)
                         if key in results[name] else "")
                for key, _, text, unit in COLUMNS))

        ours, other = results["ours"], results["nchan"]
        print("%6s" % "ratio", " ".join(
            "%9s" % ("%.2f" % (ours[key] / other[key])
                     if other.get(key) else "")
            for key, _, _, _ in COLUMNS))
        print()


class Hold:
    """A rule, the cells for which it was tried, and the worst of them"""

    def __init__(self, text):
        self.text = text
        self.tried = []

    def check(self, cell, holds, ratio, numbers):
        self.tried.append((not holds, ratio, cell, numbers))

    def report(self):
        missed = sorted((t for t in self.tried if t[0]), reverse=True)
        shown = missed or [max(self.tried)]

        print("%-6s %s" % ("MISSED" if missed else "ok", self.text))

        for _, ratio, cell, numbers in shown:
            print("       %s %s   (%s)" % ("here:" if missed else "at worst:",
                                          numbers, name_of(cell)))

        return bool(missed)


def check_holds(cells, raw):
    lost = Hold("nothing is lost, and nothing comes twice")
    p99 = Hold("p99 at most %.1f of nchan's, or at most %d ms above it"
               % (P99_RATIO, P99_MORE / 1000))
    each = Hold("CPU for an event at most %.2f of nchan's, a task for each"
                " reader" % CPU_EACH)
    one = Hold("CPU for an event at most %.2f of nchan's, one task for all"
               % CPU_ONE)
    nchan = Hold("memory of an idle reader at most %.2f of nchan's"
                 % MEMORY_NCHAN)
    held = Hold("memory of an idle reader at most %.2f of a request merely"
                " held" % MEMORY_HELD)

    for cell, results in cells.items():
        ours, other, plain = (results[x] for x in ("ours", "nchan", "held"))

        # here each round counts, not the best one
        bad = sum(sum(raw[cell]["ours"][key])
                  for key in ("lost", "twice", "fast_lost", "fast_twice"))
        events = sum(sum(raw[cell]["ours"][key])
                     for key in ("events", "fast_events"))
        lost.check(cell, bad == 0, bad, "%d of %d events" % (bad, events))

        limit = max(other["p99"] * P99_RATIO, other["p99"] + P99_MORE)
        p99.check(cell, ours["p99"] <= limit, ours["p99"] / limit,
                  "%.3f ms, nchan %.3f ms"
                  % (ours["p99"] / 1000, other["p99"] / 1000))

        for hold, key, mine, its, limit, whose in (
                (one if cell[2] == 1 else each, "cpu", ours, other,
                 CPU_ONE if cell[2] == 1 else CPU_EACH, "nchan"),
                (nchan, "mem", ours, other, MEMORY_NCHAN, "nchan"),
                (held, "mem", ours, plain, MEMORY_HELD, "held")):
            ratio = mine[key] / its[key]
            numbers = "%.2f: %.2f us, %s %.2f us" if key == "cpu" \
                      else "%.2f: %.0f B, %s %.0f B"
            hold.check(cell, ratio <= limit, ratio,
                       numbers % (ratio, mine[key], whose, its[key]))

    missed = [hold.report() for hold in (lost, p99, each, one, nchan, held)]

    # it is not our business to hold nchan to it, but the reader should know
    bad = sum(sum(raw[cell]["nchan"][key]) for cell in cells
              for key in ("lost", "twice", "fast_lost", "fast_twice"))
    if bad:
        print("\nnchan lost or repeated %d events" % bad)

    return any(missed)


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    if hard != resource.RLIM_INFINITY and hard < max(READERS) + 100:
        die("%d readers need that many open files, and %d is the limit:"
            " see \"ulimit -Hn\"" % (max(READERS), hard))

    with Server("nchan", 1) as server:
        version = [line.split()[-1] for line in server.status().splitlines()
                   if line.startswith("nchan version")]

    started = time.monotonic()
    before = others()
    raw = measure_all()
    cells = figures(raw)
    passed = time.monotonic() - started
    share = (others() - before) / passed

    sample = cells[max(cells)]
    print("%d round%s in %d s; nchan %s; events of %d bytes, nchan's of %d"
          % (ROUNDS, "s" * (ROUNDS > 1), passed, "".join(version),
             sample["ours"]["wire"], sample["nchan"]["wire"]))
    print(was_busy(share) + "\n")
    print_table(cells)

    if os.environ.get("JSON"):
        with open(os.environ["JSON"], "w") as f:
            json.dump([dict(zip(("workers", "readers", "tasks"), cell),
                            **results) for cell, results in cells.items()], f)

    sys.exit(1 if check_holds(cells, raw) else 0)


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    NGINX, MODULE, NCHAN_MODULE, CLIENT, DIRECTORY = \
        (os.path.abspath(path) for path in sys.argv[1:])
    main()
