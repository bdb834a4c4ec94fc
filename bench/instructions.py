#!/usr/bin/env python3
"""Counts the instructions that nginx executes per request, with callgrind.

bench/instructions.py NGINX MODULE TEST_MODULE DIRECTORY RECORD [--record]

Unlike time, these counts are the same on a busy and on an idle machine.  A
count is the difference of two runs, one with twice as many requests, so that
startup and shutdown cancel out.  The kernel is not included.

RECORD contains the recorded counts and the system on which they were made:
counts of another compiler, C library or nginx are not comparable.  Exits with
status 1 if a request takes over 10 % more instructions than recorded.
--record records the new counts.

Profiles are kept in DIRECTORY; to view one:
callgrind_annotate DIRECTORY/tasks-get-legacy/2000.out
"""

import json
import os
import platform
import re
import subprocess
import sys
import time

from common import Nginx, die
from mcp import (Client, Connection, TASK_ID, claim, claims, complete, question,
                 session_of)

REQUESTS = 1000
TOLERANCE = 0.1

# of a task that has completed
RESULT_SIZE = 1024

CONF = """
    location /mcp {
        mcp_tasks        zone=tasks;
        mcp_tasks_tools  tools.json;
        mcp_tasks_owner  $remote_addr;
    }

    location /worker {
        mcp_tasks_worker  zone=tasks;
    }
"""

STUB = "location = /stub { mcp_tasks_stub '%s'; }"

ANSWER = ('{"jsonrpc":"2.0","id":1,"result":{"taskId":"%s","status":"working",'
          '"createdAt":"%s","lastUpdatedAt":"%s","ttl":3600000,'
          '"pollInterval":1000}}' % ("x" * 36, "x" * 24, "x" * 24))


def join(client, connection):
    """a session, where the era has them"""

    if client.era == "legacy":
        client.session = None
        header, _ = connection.ask(client.initialize())
        client.session = session_of(header)


def create(client, connection, n):
    join(client, connection)
    return [client.call()] * n


def get(client, connection, n):
    join(client, connection)
    _, body = connection.ask(client.call())
    task = TASK_ID.search(body).group(1).decode()
    return [client.get(task)] * n


def completed(client, connection):
    """a task with a result"""

    join(client, connection)
    connection.ask(client.call())

    # its two times never have their second in common, or sometimes they would
    time.sleep(1.1)

    _, body = connection.ask(claim("/worker"))
    task, lease = (re.search(rb'"%s":"([^"]+)"' % name, body).group(1).decode()
                   for name in (b"taskId", b"lease"))
    connection.ask(complete("/worker", task, lease, RESULT_SIZE))
    return task


def get_completed(client, connection, n):
    return [client.get(completed(client, connection))] * n


def result(client, connection, n):
    return [client.result(completed(client, connection))] * n


def claimed(client, connection):
    """the same number of tasks in both runs, each with its lease token"""

    for _ in range(2 * REQUESTS):
        connection.ask(client.call())
    return claims(connection, "/worker")


def ask(client, connection, n):
    return [question("/worker", *task)
            for task in claimed(client, connection)[:n]]


def update(client, connection, n):
    tasks = claimed(client, connection)
    for task in tasks:
        connection.ask(question("/worker", *task))
    return [client.update(task) for task, _ in tasks[:n]]


def progress(client, connection, n):
    connection.ask(client.call(token="bench"))
    claims(connection, "/worker")
    return [client.progress("bench", 100000 + i) for i in range(n)]


def plain(client, connection, n):
    client.session = "x" * 48
    return [client.get("x" * 36)] * n


# what is counted; of the floor it is only shown, to compare with
CASES = [(what + " " + era, function, Client("/mcp", era))
         for what, function in (("tasks/get", get), ("create", create))
         for era in ("legacy", "modern")]

# where each era has the result of a task
CASES += [("tasks/result legacy", result, Client("/mcp", "legacy")),
          ("tasks/get completed", get_completed, Client("/mcp", "modern"))]

# questions, their answers, and progress
CASES += [("worker/ask", ask, Client("/mcp", "modern", elicitation={})),
          ("tasks/update", update, Client("/mcp", "modern", elicitation={})),
          ("tasks/progress", progress, Client("/mcp", "modern"))]

FLOORS = [("floor " + era, plain, Client("/stub", era))
          for era in ("legacy", "modern")]


class Counted(Nginx):
    """one process, of which instructions are counted"""

    def __init__(self, name, module, server):
        super().__init__(NGINX, os.path.join(DIRECTORY, name), 1,
                         main="load_module %s;\nmaster_process off;" % module,
                         http="mcp_tasks_zone zone=tasks:16m;", server=server)

    def count(self, requests, client, n):
        """in all, with so many requests"""

        out = os.path.join(self.dir, "%d.out" % n)
        valgrind = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out,
             self.binary, "-e", "stderr", "-p", self.dir + "/",
             "-c", os.path.join(self.dir, "nginx.conf")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        try:
            connection = self.connect(valgrind)

            for request in requests(client, connection, n):
                _, body = connection.ask(request)
                if b'"result"' not in body:
                    die("not a result: %s" % body.decode())

            connection.close()

        finally:
            valgrind.terminate()
            valgrind.wait()

        with open(out) as f:
            return int(re.search(r"^(?:totals|summary): (\d+)", f.read(),
                                 re.M).group(1))

    def connect(self, valgrind):
        for _ in range(600):
            time.sleep(0.1)
            if valgrind.poll() is not None:
                die("nginx did not start under valgrind: see %s" % self.dir)
            try:
                return Connection(self.port)
            except OSError:
                pass
        die("nginx does not answer under valgrind")


def count(case, module, server):
    name, requests, client = case
    nginx = Counted(re.sub(r"\W", "-", name), module, server)

    return (nginx.count(requests, client, 2 * REQUESTS)
            - nginx.count(requests, client, REQUESTS)) // REQUESTS


def setting():
    """what the figures belong to"""

    def first(*command):
        return subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT,
                              text=True).stdout.splitlines()[0]

    return ", ".join([platform.machine(), first("gcc", "--version"),
                      " ".join(platform.libc_ver()),
                      first(NGINX, "-v").split()[-1]])


def main():
    with open(RECORD) as f:
        record = json.load(f)

    where = setting()
    known = record.get(where)
    counts, missed = {}, []

    print("instructions for a request (%s)" % where)

    for case in CASES:
        name = case[0]
        counts[name] = count(case, MODULE, CONF)
        line = "  %-20s %7d" % (name, counts[name])

        if known and name in known:
            ratio = counts[name] / known[name]
            line += "   recorded %7d   ratio %.3f" % (known[name], ratio)
            if ratio > 1 + TOLERANCE:
                line += "   DOES NOT HOLD"
                missed.append(name)

        print(line, flush=True)

    for case in FLOORS:
        print("  %-20s %7d" % (case[0],
                               count(case, TEST_MODULE, STUB % ANSWER)))

    if "--record" in sys.argv:
        record[where] = counts
        with open(RECORD, "w") as f:
            json.dump(record, f, indent=2, sort_keys=True)
            f.write("\n")
        print("recorded in %s" % os.path.relpath(RECORD))

    elif not known:
        print("not comparable: nothing was recorded for this compiler, C"
              " library and nginx;\n\"make bench-instructions RECORD=1\""
              " does that")

    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    if len(sys.argv) not in (6, 7):
        sys.exit(__doc__)
    NGINX, MODULE, TEST_MODULE, DIRECTORY, RECORD = \
        (os.path.abspath(path) for path in sys.argv[1:6])
    main()
