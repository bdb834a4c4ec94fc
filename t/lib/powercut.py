#!/usr/bin/env python3
"""Cuts the power at every point of a recorded run, and looks what is left.

t/lib/powercut.py NGINX MODULE FAULTS DIRECTORY

Clients work with an nginx whose store's files are recorded by faults.c: every
write, every sync.  What was acknowledged is noted with the length of the
record at that time.  Then the files are made anew as they were after each call
of the record:

  all     with everything that was written
  synced  only with what was synced: the worst that a power cut may leave
  torn    of what was not synced, some sectors are there and others are not

Each time SQLite must find the database in order, every row must be whole, and
all that had been acknowledged must be there, and nothing else but what was
asked for.  nginx itself starts with some of them.

CUTS=N is how many cuts there are at most; all, if it is not said.  Writes TAP.
"""

import collections
import multiprocessing
import os
import random
import shutil
import struct
import sqlite3
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import database
from ledger import Ledger
from nginx import Server
from workload import TOOLS, Client, Workload

# as in faults.c
RECORD = struct.Struct("=IIcB6xQQ")
MAGIC = 0x4641554C
NAMES = (None, "", "-wal", "-shm", "-lock", "-journal", "/")

Call = collections.namedtuple("Call", "end call name offset data")

SECTORS = (512, 4096)
CUTS = int(os.environ.get("CUTS", 0))
STARTS = 12

# in the memory, as nothing here has to last
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def read_log(path):
    with open(path, "rb") as f:
        log = f.read()

    calls, at = [], 0

    while at < len(log):
        magic, pid, call, name, offset, size = RECORD.unpack_from(log, at)
        if magic != MAGIC:
            raise ValueError("no record at %d" % at)

        at += RECORD.size
        data = b""
        if call == b"w":
            data = log[at:at + size]
            at += size

        # that it is mapped is not recorded, nor does it matter
        if NAMES[name] != "-shm":
            calls.append(Call(at, call.decode(), NAMES[name], offset, data))

    return calls


def apply(image, call):
    """what a write or truncation makes of a file"""

    if call.call == "t":
        del image[call.offset:]
        size = call.offset
    else:
        size = call.offset + len(call.data)

    if len(image) < size:
        image.extend(bytes(size - len(image)))
    if call.call == "w":
        image[call.offset:size] = call.data


class Inode:
    """what was written to a file, and what of that will last"""

    def __init__(self):
        self.now = bytearray()
        self.synced = bytearray()
        self.pending = []           # the difference
        self.begun = 0              # so many of these are being synced

    def call(self, call):
        if call.call == "b":
            self.begun = len(self.pending)
        elif call.call == "d":
            for done in self.pending[:self.begun]:
                apply(self.synced, done)
            del self.pending[:self.begun]
            self.begun = 0
        else:
            apply(self.now, call)
            self.pending.append(call)

    def torn(self, rng):
        """a copy with some of what was not synced"""

        image = bytearray(self.synced)

        for call in self.pending:
            luck = rng.random()

            if luck < 0.3:
                continue
            if call.call == "t" or luck < 0.6:
                apply(image, call)
                continue

            sector = rng.choice(SECTORS)
            at, size = call.offset, call.offset + len(call.data)

            while at < size:
                end = min((at // sector + 1) * sector, size)
                if rng.random() < 0.5:
                    apply(image, call._replace(
                        offset=at, data=call.data[at - call.offset:
                                                  end - call.offset]))
                at = end

        return image


class Disk:
    """the files of a store as calls leave them: which there are is a matter of
    their directory, and lasts when that is synced"""

    def __init__(self):
        self.now = {}
        self.synced = {}
        self.pending = []           # (name, inode or None)
        self.begun = 0

    def call(self, call):
        name = call.name

        if name == "/" and call.call == "b":
            self.begun = len(self.pending)
        elif name == "/":
            self.synced = self.entries(self.begun)
            del self.pending[:self.begun]
            self.begun = 0
        elif call.call == "c":
            self.now[name] = Inode()
            self.pending.append((name, self.now[name]))
        elif call.call == "u":
            del self.now[name]
            self.pending.append((name, None))
        else:
            self.now[name].call(call)

    def entries(self, n):
        """once the first n changes of the directory have been synced"""

        entries = dict(self.synced)
        for name, inode in self.pending[:n]:
            entries[name] = inode
        return {name: inode for name, inode in entries.items() if inode}

    def images(self, variant, rng):
        if variant == "all":
            return {name: inode.now for name, inode in self.now.items()}
        if variant == "synced":
            return {name: inode.synced for name, inode in self.synced.items()}

        # a file system keeps the order of these
        entries = self.entries(rng.randint(0, len(self.pending)))
        return {name: inode.torn(rng) for name, inode in entries.items()}

    def write(self, directory, variant, rng):
        """the path of the database"""

        for name in os.listdir(directory):
            os.unlink(os.path.join(directory, name))

        path = os.path.join(directory, "tasks.db")

        for name, image in self.images(variant, rng).items():
            with open(path + name, "wb") as f:
                f.write(image)

        return path


def look(path, ledger, limit):
    """what is wrong with the database there"""

    if not os.path.exists(path):
        return ledger.check([], limit, settle=False)

    # if it may not write, it does not tidy up at the end, which takes time
    if not os.path.exists(path + "-journal"):
        path = "file:%s?mode=ro" % path

    db = database.connect(path)

    try:
        # as long as there are no tables there are no tasks
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'tasks'"
                          ).fetchall():
            return ledger.check([], limit, settle=False)

        database.intact(db)
        return ledger.check(database.rows(db), limit, settle=False)

    except (database.Malformed, sqlite3.Error) as e:
        return ["%s: %s" % (type(e).__name__, e)]

    finally:
        db.close()


class Run:
    """a recorded one"""

    def __init__(self, args, sync):
        self.nginx, self.module, self.faults, directory = args
        self.sync = sync
        self.dir = os.path.join(os.path.abspath(directory), sync)
        self.log = os.path.join(self.dir, "record")

        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)

    def server(self, directory, env=None):
        path = os.path.join(directory, "tasks.db")
        return Server(self.nginx, self.module, directory, TOOLS,
                      store="store=sqlite:%s sync=%s" % (path, self.sync),
                      env=env)

    def large(self, server, n):
        """so many large tasks, which make the log begin anew"""

        load = Workload(server, self.ledger, n)
        client = Client(load, load.random)

        for _ in range(n):
            client.create("solo", "x" * 90000)

    def record(self, seed, changes, kills, large):
        server = self.server(self.dir, {
            "LD_PRELOAD": self.faults,
            "ASAN_OPTIONS": "verify_asan_link_order=0",
            "MCP_TASKS_FAULTS_FILES": os.path.join(self.dir, "tasks.db"),
            "MCP_TASKS_FAULTS_LOG": self.log})
        self.ledger = Ledger(lambda: os.stat(self.log).st_size)

        # it is killed when nothing is under way, and stops at the end
        for part in range(kills + 1):
            server.start()
            self.large(server, large)
            load = Workload(server, self.ledger, seed + part)
            load.start()
            end = time.monotonic() + 60

            while (self.ledger.acknowledged < (part + 1) * changes
                   and time.monotonic() < end):
                time.sleep(0.002)

            load.stop()

            if part < kills:
                server.kill()
                self.ledger.restarted()

        stopped = server.stop()
        self.calls = read_log(self.log)
        return stopped and not server.faults()

    def cuts(self):
        """After which calls: all, or as many as there may be.  Most write the
        log, so these take half of them, and the other half is for the rest."""

        logged = [i for i, call in enumerate(self.calls)
                  if call.name == "-wal" and call.call == "w" and call.offset]
        others = sorted(set(range(len(self.calls))) - set(logged))

        if CUTS:
            logged, others = (
                calls[::-(-len(calls) // (CUTS // 2)) or 1]
                for calls in (logged, others))

        return sorted(logged + others)

    def cut(self, variant, cuts, seed, acknowledged=True, most=3):
        """what is wrong after these, and how many were tried"""

        rng = random.Random("%s %s" % (seed, variant))
        scratch = tempfile.mkdtemp(prefix="powercut-", dir=SCRATCH)
        disk, wrong, next_ = Disk(), [], 0

        try:
            for i in cuts:
                for call in self.calls[next_:i + 1]:
                    disk.call(call)
                next_ = i + 1

                path = disk.write(scratch, variant, rng)
                found = look(path, self.ledger,
                             self.calls[i].end if acknowledged else -1)

                if found:
                    wrong.append("after call %d of %d (%s of \"%s\"): %s"
                                 % (i, len(self.calls), self.calls[i].call,
                                    self.calls[i].name,
                                    "\n".join(found[:3])))
                    if len(wrong) >= most:
                        break
        finally:
            shutil.rmtree(scratch)

        return wrong

    def start(self, variant, cuts, seed):
        """the same with nginx"""

        rng = random.Random("%s %s nginx" % (seed, variant))
        disk, wrong, next_ = Disk(), [], 0
        directory = os.path.join(self.dir, "start-" + variant)

        for i in cuts:
            for call in self.calls[next_:i + 1]:
                disk.call(call)
            next_ = i + 1

            shutil.rmtree(directory, ignore_errors=True)
            os.makedirs(directory)
            path = disk.write(directory, variant, rng)
            server = self.server(directory)

            try:
                server.start()
                _, _, text = server.connect().request(
                    "GET", "/probe?op=check")
                if b'"check":"ok"' not in text:
                    wrong.append("the table: %s" % text.decode())
                if not server.stop():
                    wrong.append("it does not stop")
                wrong += look(path, self.ledger, self.calls[i].end)
                wrong += server.faults()
            except RuntimeError as e:
                wrong.append(str(e))
            finally:
                server.kill()

            if wrong:
                wrong.append("after call %d of %d" % (i, len(self.calls)))
                break

        return wrong


class Tap:
    def __init__(self):
        self.n = 0
        self.failed = 0

    def ok(self, good, name, *why):
        self.n += 1
        self.failed += not good
        print("%sok %d - %s" % ("" if good else "not ", self.n, name))
        if not good:
            for line in "\n".join(why).splitlines():
                print("# " + line)
        sys.stdout.flush()


def job(run, how, queue, *args):
    try:
        queue.put((args[0], how(*args)))
    except Exception as e:
        queue.put((args[0], ["%s: %s" % (type(e).__name__, e)]))


def at_once(run, jobs):
    """[(function, arguments...)]: what each found, by its first argument"""

    queue = multiprocessing.Queue()
    found = {}
    processes = [multiprocessing.Process(target=job,
                                         args=(run, how, queue) + tuple(args))
                 for how, *args in jobs]

    for process in processes:
        process.start()
    for _ in processes:
        name, wrong = queue.get()
        found.setdefault(name, []).extend(wrong)
    for process in processes:
        process.join()

    return found


def main():
    tap = Tap()
    seed = random.getrandbits(32)
    print("# seed %d" % seed)

    run = Run(sys.argv[1:], "always")
    tap.ok(run.record(seed, 300, 1, 16), "a run is recorded")
    cuts = run.cuts()
    kinds = collections.Counter((call.name, call.call) for call in run.calls)
    print("# %d calls, %d changes acknowledged, %d tasks; %s"
          % (len(run.calls), run.ledger.acknowledged, len(run.ledger.tasks),
             ", ".join("%s%s %d" % (name or "database ", call, n)
                       for (name, call), n in sorted(kinds.items()))))

    tap.ok(kinds["-wal", "d"] > 20 and kinds["", "w"] > 0 and kinds["", "d"],
           "the log is synced, and copied to the database")

    # other than after a start
    begins = [i for i, call in enumerate(run.calls)
              if call.name == "-wal" and call.call == "w" and not call.offset]
    tap.ok(len(begins) > kinds["-wal", "c"], "it begins anew")

    variants = ("all", "synced", "torn")
    started = time.monotonic()
    found = at_once(run, [(run.cut, variant, cuts[half::2], seed)
                          for variant in variants for half in (0, 1)])

    for variant in variants:
        tap.ok(not found[variant], "%s: %d cuts lose nothing"
               % (variant, len(cuts)), *found[variant])
    print("# %.1f s" % (time.monotonic() - started))

    # most while the database is made
    some = sorted(set(cuts[:60:4] + cuts[::max(1, len(cuts) // STARTS)]))
    found = at_once(run, [(run.start, variant, some, seed)
                          for variant in variants])

    for variant in variants:
        tap.ok(not found[variant], "%s: nginx starts with %d of them"
               % (variant, len(some)), *found[variant])

    # what is not synced has to be missed
    run = Run(sys.argv[1:], "off")
    tap.ok(run.record(seed, 200, 0, 0), "another one, without syncs, is recorded")
    cuts = run.cuts()

    found = run.cut("all", cuts[::4], seed, acknowledged=False)
    tap.ok(not found, "all: nothing is torn", *found)
    tap.ok(run.cut("synced", cuts[-1:], seed),
           "synced: something is lost, and it is seen")

    print("1..%d" % tap.n)
    sys.exit(1 if tap.failed else 0)


main()
