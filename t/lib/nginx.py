"""An nginx that is started, killed and asked, for tests written in Python."""

import glob
import json
import os
import random
import re
import signal
import socket
import subprocess
import time

CONF = """
load_module  %(module)s;

daemon  off;
%(user)s
worker_processes  %(workers)d;
%(main)s

pid        nginx.pid;
error_log  logs/error.log  notice;

events {
    worker_connections  %(connections)d;
    %(events)s
}

http {
    access_log  off;

    client_body_temp_path  client_body;
    proxy_temp_path        proxy;
    fastcgi_temp_path      fastcgi;
    uwsgi_temp_path        uwsgi;
    scgi_temp_path         scgi;

    client_max_body_size  4m;
    keepalive_requests    1000000;

    mcp_tasks_zone   zone=z:%(size)s %(store)s;
    mcp_tasks_tools  tools.json;
    mcp_tasks_owner  $http_x_user;

    server {
        listen  127.0.0.1:%(port)d %(listen)s;

        %(server)s
        location /mcp { mcp_tasks zone=z; }
        location /worker { mcp_tasks_worker zone=z; }
        location /status { mcp_tasks_status zone=z; }
        location /probe { mcp_tasks_probe zone=z; }
    }
}
"""

# an answer that takes longer will not come
TIMEOUT = 30


class Gone(Exception):
    """the server went away before the answer was whole"""


def unique(pairs):
    """an object whose keys differ"""

    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("duplicate key in %r" % (pairs,))
    return found


def decode(text):
    """JSON in which no key is duplicate"""

    return json.loads(text, object_pairs_hook=unique)


def free_port():
    """below those that the kernel takes for outgoing connections"""

    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def alive(pid):
    """whether any of its threads is"""

    for path in glob.glob("/proc/%d/task/*/stat" % pid):
        try:
            with open(path) as f:
                if f.read().rpartition(")")[2].split()[0] not in "ZX":
                    return True
        except OSError:
            pass

    return False


class Server:
    """zone "z" with tools as given, in a directory of its own; main, events,
    listen and server are put into the configuration where they belong"""

    def __init__(self, nginx, module, directory, tools, store="", size="32m",
                 workers=2, connections=256, env=None, **more):
        self.nginx = nginx
        self.dir = os.path.abspath(directory)
        self.port = free_port()
        self.env = dict(os.environ, **(env or {}))
        self.env.pop("NGINX", None)
        self.process = None

        os.makedirs(os.path.join(self.dir, "logs"), exist_ok=True)

        with open(os.path.join(self.dir, "tools.json"), "w") as f:
            json.dump({"tools": [
                {"name": name, "inputSchema": {"type": "object"},
                 "mcpTasks": policy} for name, policy in tools.items()]}, f)

        self.conf = dict(module=module, store=store, size=size,
                         workers=workers, connections=connections,
                         port=self.port, main="", events="", listen="",
                         server="",
                         user="user  root;" if os.getuid() == 0 else "")
        self.conf.update(more)

    def start(self):
        """once it is there, requests wait until it serves"""

        with open(os.path.join(self.dir, "nginx.conf"), "w") as f:
            f.write(CONF % self.conf)

        # a group of its own can be killed at one blow
        with open(os.path.join(self.dir, "logs", "stderr"), "a") as err:
            self.process = subprocess.Popen(
                [self.nginx, "-p", self.dir + "/",
                 "-e", os.path.join(self.dir, "logs", "error.log"),
                 "-c", os.path.join(self.dir, "nginx.conf")],
                env=self.env, stdout=err, stderr=err, start_new_session=True)

        end = time.monotonic() + TIMEOUT

        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.005)

            if self.process.poll() is not None:
                break

        self.kill()
        raise RuntimeError("nginx did not start:\n" + self.log()[-2000:])

    def kill(self):
        """the master and all workers, at once"""

        if not self.process:
            return

        workers = self.children()

        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

        self.process.wait()
        self.process = None

        # while one is there, its sockets are
        while any(alive(pid) for pid in workers):
            time.sleep(0.001)

    def stop(self):
        """whether it ended as it should"""

        process, self.process = self.process, None
        process.send_signal(signal.SIGQUIT)

        try:
            return process.wait(TIMEOUT) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False

    def children(self):
        path = "/proc/%d/task/%d/children" % ((self.process.pid,) * 2)
        try:
            with open(path) as f:
                return [int(pid) for pid in f.read().split()]
        except OSError:
            return []

    def log(self):
        text = ""
        for name in "error.log", "stderr":
            with open(os.path.join(self.dir, "logs", name)) as f:
                text += f.read()
        return text

    def faults(self):
        """lines of the log that no test may cause, but for those of workers
        that were killed, which may have held the lock"""

        return [line for line in self.log().splitlines()
                if re.search(r"\[(alert|emerg|crit)\]|Sanitizer|runtime error",
                             line)
                and not re.search(r"exited on signal 9$|was locked by", line)]

    def connect(self):
        return Connection(self.port)


class Connection:
    """requests over one connection; Gone if the server is"""

    def __init__(self, port):
        self.port = port
        self.socket = None
        self.buffer = b""

    def close(self):
        if self.socket:
            self.socket.close()
            self.socket = None
        self.buffer = b""

    def send(self, data):
        try:
            if self.socket is None:
                self.buffer = b""
                self.socket = socket.create_connection(
                    ("127.0.0.1", self.port), TIMEOUT)
                self.socket.setsockopt(socket.IPPROTO_TCP,
                                       socket.TCP_NODELAY, 1)
            self.socket.sendall(data)
        except OSError as e:
            self.close()
            raise Gone(str(e)) from e

    def more(self):
        try:
            got = self.socket.recv(262144)
        except OSError as e:
            self.close()
            raise Gone(str(e)) from e

        if not got:
            self.close()
            raise Gone("closed")

        self.buffer += got

    def receive(self):
        """(status, headers, body)"""

        while b"\r\n\r\n" not in self.buffer:
            self.more()

        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        size = int(headers.get("content-length", 0))

        while len(self.buffer) < size:
            self.more()

        body, self.buffer = self.buffer[:size], self.buffer[size:]
        close = headers.get("connection") == "close"

        if close:
            self.close()

        return int(lines[0].split()[1]), headers, body

    @staticmethod
    def message(method, uri, body=None, user=None):
        head = "%s %s HTTP/1.1\r\nHost: localhost\r\n" % (method, uri)

        if user is not None:
            head += "X-User: %s\r\n" % user
        if body is not None:
            head += ("Content-Type: application/json\r\n"
                     "Content-Length: %d\r\n" % len(body))

        return head.encode() + b"\r\n" + (body or b"")

    def request(self, method, uri, body=None, user=None):
        self.send(self.message(method, uri, body, user))
        return self.receive()

    def pipeline(self, messages, at_once=64):
        """what message() gave, many at a time"""

        for i in range(0, len(messages), at_once):
            part = messages[i:i + at_once]
            self.send(b"".join(part))

            for _ in part:
                yield self.receive()

    def work(self, method, **params):
        """what a worker says: the decoded answer"""

        body = json.dumps({"jsonrpc": "2.0", "id": 1,
                           "method": "worker/" + method, "params": params})
        status, _, answer = self.request("POST", "/worker", body.encode())

        if status != 200:
            return {"error": {"code": status, "message": answer.decode()}}
        return decode(answer)
