"""Shared code of the benchmarks: runs nginx and measures its CPU time."""

import os
import socket
import subprocess
import sys
import time
import urllib.request

QUICK = os.environ.get("QUICK", "") not in ("", "0")

# processors that others may use before the figures are in doubt
BUSY = 0.2

NGINX_CONF = """
daemon            off;
worker_processes  %(workers)d;
pid               nginx.pid;
error_log         error.log error;
%(main)s

events {
    worker_connections  16384;
}

http {
    access_log          off;
    keepalive_requests  1000000000;

    client_body_temp_path  client_body;
    proxy_temp_path        proxy;
    fastcgi_temp_path      fastcgi;
    uwsgi_temp_path        uwsgi;
    scgi_temp_path         scgi;

    %(http)s

    server {
        # reuseport: connections are spread evenly over processes
        listen       127.0.0.1:%(port)d reuseport backlog=4096%(listen)s;
        server_name  localhost;

        %(server)s
    }
}
"""

TOOLS = '{"tools":[{"name":"bench","inputSchema":{"type":"object"}}]}'


def die(message):
    sys.stdout.flush()
    print("%s: %s" % (os.path.basename(sys.argv[0]), message),
          file=sys.stderr)
    sys.exit(2)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def progress(text):
    """a line that is written over, for whoever looks on"""

    if sys.stderr.isatty():
        print("\r%-78s\r%s" % ("", text), end="", file=sys.stderr, flush=True)


def cpu_of(pids):
    """seconds of processor time that these have used"""

    ticks = 0
    for pid in pids:
        with open("/proc/%s/stat" % pid) as f:
            # the name of the command may have spaces
            words = f.read().rpartition(")")[2].split()
        ticks += int(words[11]) + int(words[12])

    return ticks / os.sysconf("SC_CLK_TCK")


def others():
    """seconds of processor time that were used, but not by us"""

    with open("/proc/stat") as f:
        ticks = [int(word) for word in f.readline().split()[1:9]]

    # neither idle nor waiting for a disk
    used = (sum(ticks) - sum(ticks[3:5])) / os.sysconf("SC_CLK_TCK")
    own = os.times()

    return used - sum(own[:4])


def was_busy(share):
    return ("other programs used %.2f of %d processors meanwhile%s"
            % (max(share, 0), os.cpu_count(),
               ": the figures are not reliable" if share > BUSY else ""))


class Nginx:
    """nginx with a configuration, while in a "with" block"""

    def __init__(self, nginx, directory, workers=1, main="", http="",
                 server="", listen=""):
        self.binary = nginx
        self.dir = directory
        self.port = free_port()
        self.workers = workers
        os.makedirs(os.path.join(self.dir, "logs"), exist_ok=True)

        # as root, workers would become a user who may not even come here
        if os.getuid() == 0:
            main += "\nuser root;"

        with open(os.path.join(self.dir, "nginx.conf"), "w") as f:
            f.write(NGINX_CONF
                    % {"workers": workers, "port": self.port,
                       "main": main.strip(), "http": http.strip(),
                       "server": server.strip(), "listen": listen})
        with open(os.path.join(self.dir, "tools.json"), "w") as f:
            f.write(TOOLS)

    def children(self):
        path = "/proc/%d/task/%d/children" % (self.nginx.pid, self.nginx.pid)
        try:
            with open(path) as f:
                return f.read().split()
        except OSError:
            return []

    def cpu(self):
        return cpu_of(self.children())

    def __enter__(self):
        self.nginx = subprocess.Popen(
            [self.binary, "-e", "stderr", "-p", self.dir + "/",
             "-c", os.path.join(self.dir, "nginx.conf")])

        # a minute, as it may have tasks to load
        for _ in range(1200):
            time.sleep(0.05)
            if self.nginx.poll() is not None:
                die("nginx did not start: see %s" % self.dir)
            if len(self.children()) == self.workers:
                break
        else:
            self.__exit__()
            die("nginx has not started its workers")

        return self

    def __exit__(self, *unused):
        self.nginx.terminate()
        try:
            self.nginx.wait(10)
        except subprocess.TimeoutExpired:
            self.nginx.kill()
            self.nginx.wait()

    def get(self, path):
        url = "http://127.0.0.1:%d%s" % (self.port, path)
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.read().decode()
