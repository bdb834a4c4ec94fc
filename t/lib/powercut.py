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

CUTS=N is how many cuts there are at most, 0 for all.  Writes TAP.
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

import database
from ledger import Ledger
from nginx import Server
from workload import TOOLS, Workload

# as in faults.c
RECORD = struct.Struct("=IIcB6xQQ")
MAGIC = 0x4641554C
NAMES = ("", "", "-wal", "-shm", "-lock", "-journal", "/")
DIRECTORY = NAMES.index("/")

Call = collections.namedtuple("Call", "end call name offset data")

SECTORS = (512, 4096)
CUTS = int(os.environ.get("CUTS", 1500))
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


class File:
    """what was written to it, and what of that will last"""

    def __init__(self):
        self.now = None             # None: it does not exist
        self.synced = None
        self.pending = []           # what would have to be synced
        self.begun = 0              # so many of these will be

    @staticmethod
    def apply(image, call):
        """the image after it, which may be the same object"""

        if call.call == "c":
            return bytearray() if image is None else image
        if call.call == "u" or image is None:
            return None

        if call.call == "t":
            if call.offset <= len(image):
                del image[call.offset:]
            else:
                image.extend(bytes(call.offset - len(image)))
            return image

        if len(image) < call.offset:
            image.extend(bytes(call.offset - len(image)))
        image[call.offset:call.offset + len(call.data)] = call.data
        return image

    def torn(self, rng):
        """a copy with some of what was not synced"""

        image = None if self.synced is None else bytearray(self.synced)

        for call in self.pending:
            luck = rng.random()

            if call.call == "c" or (call.call != "w" and luck < 0.5):
                image = self.apply(image, call)
                continue

            if call.call != "w" or luck < 0.3 or image is None:
                continue
            if luck < 0.6:
                image = self.apply(image, call)
                continue

            sector = rng.choice(SECTORS)
            at = call.offset

            while at < call.offset + len(call.data):
                end = min((at // sector + 1) * sector,
                          call.offset + len(call.data))
                if rng.random() < 0.5:
                    image = self.apply(image, call._replace(
                        offset=at, data=call.data[at - call.offset:
                                                  end - call.offset]))
                at = end

        return image


class Disk:
    """the files of a store as calls leave them"""

    def __init__(self):
        self.files = {name: File() for name in NAMES[1:] if name != "/"}

    def call(self, call):
        if call.name == "/":
            # which files there are lasts once the directory is synced
            for file in self.files.values():
                self.sync(file, call.call,
                          lambda pending: pending.call in "cu")
            return

        file = self.files[call.name]

        if call.call in "bd":
            self.sync(file, call.call, lambda pending: pending.call in "wt")
            return

        file.now = File.apply(file.now, call)
        file.pending.append(call)

    @staticmethod
    def sync(file, call, what):
        if call == "b":
            file.begun = len(file.pending)
            return

        # a file that is not in its directory yet has its bytes nevertheless
        rest = []
        for i, pending in enumerate(file.pending):
            if i >= file.begun or not what(pending):
                rest.append(pending)
            elif pending.call in "cu":
                file.synced = File.apply(file.synced, pending)
            else:
                if file.synced is None and file.now is not None:
                    file.synced = bytearray()
                file.synced = File.apply(file.synced, pending)
        file.pending = rest
        file.begun = 0

    def image(self, variant, rng):
        for name, file in self.files.items():
            yield name, (file.now if variant == "all"
                         else file.synced if variant == "synced"
                         else file.torn(rng))

    def write(self, directory, variant, rng):
        """the path of the database"""

        for name in os.listdir(directory):
            os.unlink(os.path.join(directory, name))

        path = os.path.join(directory, "tasks.db")

        for name, image in self.image(variant, rng):
            if image is not None:
                with open(path + name, "wb") as f:
                    f.write(image)

        return path


def look(path, ledger, limit):
    """what is wrong with the database there"""

    if not os.path.exists(path):
        return ledger.check([], limit, settle=False)

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
                      server="location /probe { mcp_tasks_probe zone=z; }",
                      env=env)

    def record(self, seed, changes):
        server = self.server(self.dir, {
            "LD_PRELOAD": self.faults,
            "ASAN_OPTIONS": "verify_asan_link_order=0",
            "MCP_TASKS_FAULTS_FILES": os.path.join(self.dir, "tasks.db"),
            "MCP_TASKS_FAULTS_LOG": self.log})
        self.ledger = Ledger(lambda: os.stat(self.log).st_size)

        # once it is killed, when nothing is under way, and once it stops
        for part in 1, 2:
            server.start()
            load = Workload(server, self.ledger, seed + part)
            load.start()
            end = time.monotonic() + 60

            while (self.ledger.acknowledged < part * changes / 2
                   and time.monotonic() < end):
                time.sleep(0.002)

            load.stop()

            if part == 1:
                server.kill()

        stopped = server.stop()
        self.calls = read_log(self.log)
        return stopped and not server.faults()

    def cuts(self):
        """after which calls: all, or as many as there may be"""

        stride = len(self.calls) / CUTS if CUTS else 0
        return [i for i in range(len(self.calls))
                if stride <= 1 or i % stride < 1]

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
    tap.ok(run.record(seed, 600), "a run is recorded")
    cuts = run.cuts()
    kinds = collections.Counter((call.name, call.call) for call in run.calls)
    print("# %d calls, %d changes acknowledged, %d tasks; %s"
          % (len(run.calls), run.ledger.acknowledged, len(run.ledger.tasks),
             ", ".join("%s%s %d" % (name or "database ", call, n)
                       for (name, call), n in sorted(kinds.items()))))

    tap.ok(kinds["-wal", "d"] > 20 and kinds["", "w"] > 0 and kinds["", "d"],
           "the log is synced, and copied to the database")

    variants = ("all", "synced", "torn")
    started = time.monotonic()
    found = at_once(run, [(run.cut, variant, cuts[half::2], seed)
                          for variant in variants for half in (0, 1)])

    for variant in variants:
        tap.ok(not found[variant], "%s: %d cuts lose nothing"
               % (variant, len(cuts)), *found[variant])
    print("# %.1f s" % (time.monotonic() - started))

    some = cuts[::max(1, len(cuts) // STARTS)]
    found = at_once(run, [(run.start, variant, some, seed)
                          for variant in ("synced", "torn")])

    for variant in "synced", "torn":
        tap.ok(not found[variant], "%s: nginx starts with %d of them"
               % (variant, len(some)), *found[variant])

    # what is not synced has to be missed
    run = Run(sys.argv[1:], "off")
    tap.ok(run.record(seed, 200), "another one, without syncs, is recorded")
    cuts = run.cuts()

    tap.ok(not run.cut("all", cuts[::4], seed, acknowledged=False),
           "all: nothing is torn")
    tap.ok(run.cut("synced", cuts[-1:], seed),
           "synced: something is lost, and it is seen")

    print("1..%d" % tap.n)
    sys.exit(1 if tap.failed else 0)


main()
