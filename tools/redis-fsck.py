#!/usr/bin/env python3
"""Recounts every index and counter of a zone in Redis from its records.

    tools/redis-fsck.py [--empty] [--recent] SERVER PREFIX ZONE

SERVER is the path of a socket, or HOST:PORT.  Prints each difference and exits
with 1 if there is one.  With --empty anything that tasks leave behind is a
difference; with --recent the zone has recent=on.  Nothing may change the zone
meanwhile.
"""

import argparse
import os
import re
import socket
import struct
import sys

HEAD = 320
NEVER = 2**64 - 1
QUEUED, RUNNING, INPUT = 1, 2, 3
ANNOUNCED = 0x04

# the number of a payload in x<id>, by its place in the lengths of the head
OTHERS = {1: b"1", 2: b"2", 4: b"4", 5: b"5"}
RESULT = 3

# fields of m that are not counted
FIXED = {b"run", b"epoch", b"seq", b"about"}


class Redis:

    def __init__(self, server):
        if ":" in server and not os.path.exists(server):
            host, port = server.rsplit(":", 1)
            self.socket = socket.create_connection((host, int(port)))
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(server)

        self.file = self.socket.makefile("rb")

    def commands(self, commands):
        """Sends all, then reads all replies."""

        text = bytearray()

        for words in commands:
            text += b"*%d\r\n" % len(words)

            for word in words:
                word = word if isinstance(word, bytes) else str(word).encode()
                text += b"$%d\r\n%s\r\n" % (len(word), word)

        self.socket.sendall(text)

        return [self.reply() for _ in commands]

    def __call__(self, *words):
        return self.commands([words])[0]

    def reply(self):
        line = self.file.readline()

        if not line.endswith(b"\r\n"):
            raise SystemExit("the connection is closed")

        kind, line = line[:1], line[1:-2]

        if kind == b"-":
            raise SystemExit(f"error: {line.decode()}")

        if kind in b"+:":
            return int(line) if kind == b":" else line

        if int(line) < 0:
            return None

        if kind == b"*":
            return [self.reply() for _ in range(int(line))]

        return self.file.read(int(line) + 2)[:-2]


class Record:

    def __init__(self, data):
        (self.revision, self.version, self.changed, self.turned, self.moved,
         self.queue_seq, self.seq) = struct.unpack_from(">7Q", data)
        (self.state, self.attempt, self.flags, self.cause, self.attempts,
         self.priority, self.calls, self.pending) = data[56:64]
        self.expires, self.step_end, self.phase_end = struct.unpack_from(
            ">3Q", data, 80)
        self.worker, = struct.unpack_from(">I", data, 140)
        self.route, = struct.unpack_from(">I", data, 200)
        self.lengths = struct.unpack_from(">6I", data, 208)
        self.o = data[HEAD:HEAD + 16]

        (owner, tool, token, session, method,
         _) = struct.unpack_from(">HHBBBB", data, HEAD + 16)
        at = HEAD + 24
        names = []

        for n in (owner, tool, token, session, method):
            names.append(data[at:at + n])
            at += n

        self.owner, self.tool, self.token, self.session, self.method = names
        self.params = len(data) - at

    def bytes(self):
        return len(self.method) + sum(self.lengths)

    def deadline(self):
        times = [self.expires, self.step_end]

        if self.state in (QUEUED, RUNNING):
            times.append(self.phase_end)

        return min(times)

    def claimable(self):
        return (self.state == QUEUED and self.step_end == NEVER
                and self.route == 0)


class Check:

    def __init__(self, redis, prefix, recent):
        self.redis = redis
        self.prefix = prefix
        self.recent = recent
        self.differences = 0
        self.keys = {}
        self.records = {}

    def differs(self, *what):
        self.differences += 1
        print(f"{text(self.prefix)}:", *map(text, what))

    def compare(self, what, found, expected):
        for key in found.keys() | expected.keys():
            if found.get(key) != expected.get(key):
                self.differs(what, key, "is", found.get(key), "instead of",
                             expected.get(key))

    def of_kind(self, kind):
        return [key for key in self.keys if key[:1] == kind]

    def zset(self, key):
        flat = self.redis("ZRANGE", self.prefix + key, 0, -1, "WITHSCORES")

        return dict(zip(flat[::2], map(float, flat[1::2])))

    def hash(self, key):
        flat = self.redis("HGETALL", self.prefix + key)

        return dict(zip(flat[::2], flat[1::2]))

    def run(self, names):
        self.keys = {name[len(self.prefix):] for name in names}
        self.read_records()
        self.check_kinds()
        self.check_payloads()
        self.check_indexes()
        self.check_tokens()
        self.check_sessions()
        self.check_counters()

    def read_records(self):
        keys = self.of_kind(b"t")
        values = self.redis.commands(
            [("GET", self.prefix + key) for key in keys])

        for key, value in zip(keys, values):
            if len(key) != 17 or value is None or len(value) < HEAD + 24:
                self.differs("record", key, "is invalid")
                continue

            record = Record(value)
            self.records[key[1:]] = record

            if record.params != record.lengths[0]:
                self.differs("params of", key, "have", record.params,
                             "bytes instead of", record.lengths[0])

            if (record.state not in range(1, 7)
                    or record.pending > (record.state == RUNNING)):
                self.differs("record", key, "is invalid")

    def check_kinds(self):
        for key in self.keys:
            if (key[:1] not in b"trxidqcmwskzL"
                    or len(key) > 1 and key[:1] in b"dcmwL"):
                self.differs("unknown key", key)

            elif (key[:1] in b"rx" and len(key) == 17
                  and key[1:] not in self.records):
                self.differs("key", key, "has no task")

    def check_payloads(self):
        ids = list(self.records)
        results = self.redis.commands(
            [("STRLEN", self.prefix + b"r" + id) for id in ids])
        others = self.redis.commands(
            [("HGETALL", self.prefix + b"x" + id) for id in ids])

        for id, result, flat in zip(ids, results, others):
            record = self.records[id]
            found = {name: len(value)
                     for name, value in zip(flat[::2], flat[1::2])}
            expected = {name: record.lengths[i] for i, name in OTHERS.items()
                        if record.lengths[i]}

            if record.worker:
                expected[b"w"] = record.worker

            self.compare(f"length in x of {id.hex()}:", found, expected)

            if result != record.lengths[RESULT]:
                self.differs("result of", id, "has", result,
                             "bytes instead of", record.lengths[RESULT])

    def check_indexes(self):
        expected = {b"d": {}, b"c": {}}

        for id, record in self.records.items():
            expected.setdefault(b"i" + record.o, {})[id] = record.seq

            if record.deadline() < 2**63:
                expected[b"d"][id] = float(record.deadline())

            if self.recent:
                expected[b"c"][id] = record.changed

            if record.claimable():
                score = (3 - record.priority) * 2**46 + record.queue_seq
                expected.setdefault(b"q" + record.tool, {})[id] = score

        for key in self.of_kind(b"i") + self.of_kind(b"q"):
            expected.setdefault(key, {})

        for key, members in expected.items():
            self.compare(text(key) + ":", self.zset(key), members)

    def check_tokens(self):
        """The newest task with a token has the key, if it still exists."""

        newest = {}

        for id, record in self.records.items():
            if record.token:
                key = b"k" + record.o + record.token

                if key not in newest or record.seq > newest[key][0]:
                    newest[key] = record.seq, id

        for key in self.of_kind(b"k"):
            id = self.redis("GET", self.prefix + key)

            if key not in newest or newest[key][1] != id:
                self.differs("token", key, "has", id)

    def check_sessions(self):
        for key in self.of_kind(b"z"):
            for id, score in self.zset(key).items():
                record = self.records.get(id)

                if (record is None or record.session != key[1:]
                        or not record.flags & ANNOUNCED
                        or score > record.changed):
                    self.differs("session", key, "has", id)

    def check_counters(self):
        expected = {b"n": 0, b"b": 0}

        for state in range(1, 7):
            expected[b"s%d" % state] = 0

        seq = 0

        for record in self.records.values():
            for name, n in ((b"n", 1), (b"b", record.bytes()),
                            (b"s%d" % record.state, 1), (b"n" + record.o, 1),
                            (b"b" + record.o, record.bytes())):
                expected[name] = expected.get(name, 0) + n

            seq = max(seq, record.seq, record.changed, record.queue_seq)

        found = self.hash(b"m")

        if seq > int(found.get(b"seq", 0)):
            self.differs("m: seq is", found.get(b"seq"), "but a task has", seq)

        found = {name: int(value) for name, value in found.items()
                 if name not in FIXED}

        for name in list(expected):
            if len(name) <= 2 and name not in found:
                found[name] = 0

        self.compare("m:", found, expected)

    def check_empty(self, names):
        for name in names:
            key = name[len(self.prefix):]

            if key not in (b"m", b"meta", b"L") and key[:1] != b"s":
                self.differs("left behind:", key)

        for name in self.hash(b"m"):
            if len(name) > 2 and name not in FIXED:
                self.differs("left behind: m", name)


def text(value):
    if not isinstance(value, bytes):
        return str(value)

    return re.sub(rb"[^!-~]", lambda m: b"\\x%02x" % m.group()[0],
                  value).decode()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--empty", action="store_true")
    parser.add_argument("--recent", action="store_true")
    parser.add_argument("server")
    parser.add_argument("prefix")
    parser.add_argument("zone")
    args = parser.parse_args()

    redis = Redis(args.server)
    start = f"{args.prefix}:{args.zone}:".encode()
    glob = re.sub(rb"([*?\[\]\\^])", rb"\\\1", start)
    partitions = {start + b"{0}": []}
    cursor = b"0"

    while True:
        cursor, names = redis("SCAN", cursor, "MATCH", glob + b"{*", "COUNT",
                              1000)

        for name in names:
            prefix = name[:name.index(b"}", len(start)) + 1]
            partitions.setdefault(prefix, []).append(name)

        if cursor == b"0":
            break

    differences = tasks = 0

    for prefix, names in sorted(partitions.items()):
        names = {name for name in names if name != prefix + b"meta"}
        check = Check(redis, prefix, args.recent)
        check.run(names)

        if args.empty:
            check.check_empty(names)

        tasks += len(check.records)
        differences += check.differences

    print(f"{tasks} tasks, {differences} differences")

    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
