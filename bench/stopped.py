#!/usr/bin/env python3
"""Measures the latency of requests while a worker process is stopped.

bench/stopped.py [-t SECONDS] [-r RATE] [--pause SECONDS] [--rounds N]
                 [--busy N] [--only NAME,...] NGINX MODULE DIRECTORY

One of four worker processes is stopped with SIGSTOP for some seconds, as a
debugger or a machine without free memory would do.  Clients connect at a fixed
rate, independent of earlier responses, each with its own connection; half of
the requests create a task, half read one.  --busy adds processes that send
requests as fast as they can.  For each type of listening socket, prints the
share of requests sent while the process was stopped that waited for more than
a second, and the longest wait.

"held" means that the process was stopped while it held the lock of the zone,
so that all others wait for it.  These rounds are listed separately.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "t", "lib"))

sys.dont_write_bytecode = True

from nginx import Connection, Gone, Server

WORKERS = 4

# tasks do not fill the zone
CALL = {"name": "dig", "task": {"ttl": 1000}}

# a client waits for so long, beyond the time for which the process is stopped
PATIENCE = 5

# of the zone; it begins with the lock, the pid of whoever has it
SIZE = 32 << 20

KINDS = {
    "shared": {},
    "multi_accept": {"events": "multi_accept on;"},
    "accept_mutex": {"events": "accept_mutex on;"},
    "reuseport": {"listen": "reuseport"},
    "store": {"store": True},
    "lock": {"lock": True},
}


def message(method, params, connection=b"close"):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method,
                       "params": params}).encode()
    return (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: %s\r\n"
            b"X-User: ann\r\nMCP-Protocol-Version: 2025-11-25\r\n"
            b"Accept: application/json, text/event-stream\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % (connection, len(body))) + body


def flood(port):
    """another process that keeps nginx busy, on connections that it keeps"""

    many = [message("tools/call", CALL, b"keep-alive"),
            message("ping", {}, b"keep-alive")] * 16

    while True:
        try:
            for _ in Connection(port).pipeline(many * 4):
                pass
        except Gone:
            pass


class Load:
    def __init__(self, server, rate, limit):
        self.server = server
        self.rate = rate
        self.limit = limit
        self.tasks = []
        self.times = []              # when it came, and how long it took
        self.over = False

    async def ask(self, data):
        reader, writer = await asyncio.open_connection("127.0.0.1",
                                                       self.server.port)
        try:
            writer.write(data)
            return await reader.read()
        finally:
            writer.close()

    async def one(self, at):
        if not self.tasks or random.random() < 0.5:
            data = message("tools/call", CALL)
        else:
            data = message("tasks/get",
                           {"taskId": random.choice(self.tasks)})

        try:
            got = await asyncio.wait_for(self.ask(data), self.limit)
            body = json.loads(got.partition(b"\r\n\r\n")[2])
            task = body.get("result", {}).get("task")
            if task:
                self.tasks = self.tasks[-9:] + [task["taskId"]]
        except (asyncio.TimeoutError, OSError, ValueError):
            self.times.append((at, self.limit))
        else:
            self.times.append((at, time.monotonic() - at))

    async def run(self):
        pending = set()
        at = time.monotonic()

        while not self.over:
            # late, because this process was not given the processor: not
            # the fault of nginx
            await asyncio.sleep(max(at - time.monotonic(), 0))
            one = asyncio.ensure_future(self.one(time.monotonic()))
            pending.add(one)
            one.add_done_callback(pending.discard)
            at += random.expovariate(self.rate)

        while pending:
            await asyncio.sleep(0.05)


def lock_holder(pid):
    with open("/proc/%d/maps" % pid) as f:
        areas = [line.split()[0].split("-") for line in f if " rw-s " in line]

    base, = [int(begin, 16) for begin, end in areas
             if int(end, 16) - int(begin, 16) == SIZE]

    with open("/proc/%d/mem" % pid, "rb") as f:
        f.seek(base)
        return int.from_bytes(f.read(8), sys.byteorder)


def stop(server, lock):
    """a process, anywhere, or the next time that it has the lock"""

    if not lock:
        pid = random.choice(server.children())
        os.kill(pid, signal.SIGSTOP)
        return pid

    _, _, body = server.connect().request(
        "GET", "/probe?op=die&at=lock&signal=%d" % signal.SIGSTOP)

    return json.loads(body)["pid"]


async def stop_one(args, server, lock):
    """when it was stopped and continued, and whether it held the lock"""

    await asyncio.sleep(args.pause * (1 + random.random()))

    victim = stop(server, lock)

    try:
        while lock and lock_holder(victim) != victim:
            await asyncio.sleep(0.001)

        await asyncio.sleep(0.01)
        begun = time.monotonic()
        held = lock_holder(victim) == victim
        await asyncio.sleep(args.seconds)
    finally:
        os.kill(victim, signal.SIGCONT)

    return begun, time.monotonic(), held


async def round_(args, server, lock):
    load = Load(server, args.rate, args.seconds + PATIENCE)
    running = asyncio.ensure_future(load.run())
    begun, ended, held = await stop_one(args, server, lock)
    await asyncio.sleep(1)
    load.over = True
    await running

    return held, [took for at, took in load.times if begun <= at <= ended]


def measure(args, name, kind):
    directory = os.path.join(os.path.abspath(args.directory), name)
    shutil.rmtree(directory, ignore_errors=True)
    kind = dict(kind)

    lock = kind.pop("lock", False)

    if kind.pop("store", None):
        kind["store"] = "store=sqlite:%s/tasks.db" % directory

    server = Server(args.nginx, args.module, directory, {"dig": {}},
                    size="%dm" % (SIZE >> 20), workers=WORKERS,
                    connections=4096, **kind)
    server.start()
    results = {False: [], True: []}
    busy = [multiprocessing.Process(target=flood, args=(server.port,),
                                    daemon=True) for _ in range(args.busy)]

    try:
        for process in busy:
            process.start()

        for _ in range(args.rounds):
            held, times = asyncio.run(round_(args, server, lock))
            results[held].append(times)
    finally:
        for process in busy:
            process.kill()
        server.kill()

    for held, rounds in results.items():
        times = sorted(took for part in rounds for took in part)
        if not times:
            continue

        print("%-14s %-5s %6d %7d %8.2f %% %8.0f %8.0f %8.0f"
              % (name, "held" if held else "", len(rounds), len(times),
                 100 * sum(took > 1 for took in times) / len(times),
                 *(1000 * times[int(part * (len(times) - 1))]
                   for part in (0.5, 0.99, 1))), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-t", dest="seconds", type=float, default=10)
    parser.add_argument("-r", dest="rate", type=float, default=200)
    parser.add_argument("--pause", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("nginx")
    parser.add_argument("module")
    parser.add_argument("directory")
    args = parser.parse_args()

    print("%-20s %6s %7s %10s %8s %8s %8s"
          % ("", "rounds", "clients", "over 1 s", "median", "99 %", "most ms"))

    for name in args.only.split(","):
        measure(args, name, KINDS[name])


if __name__ == "__main__":
    main()
