"""Builds HTTP requests with messages of MCP and of the worker protocol."""

import json
import re
import socket

VERSIONS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
TASK_ID = re.compile(rb'"taskId":"([^"]+)"')
CLAIMED = re.compile(rb'"taskId":"([^"]+)","lease":"([^"]+)"')
SESSION = re.compile(rb"(?i)\r\nmcp-session-id: *([^\r]+)")
CURSOR = re.compile(rb'"nextCursor":"([^"]+)"')

CAPABILITIES = {"extensions": {"io.modelcontextprotocol/tasks": {},
                               "io.github.nginx-mcp-tasks/extended": {}}}

# a question of a worker, and its answer
QUESTION = {"method": "elicitation/create", "params": {
    "mode": "form", "message": "What is your name?", "requestedSchema": {
        "type": "object", "properties": {"name": {"type": "string"}}}}}
ANSWER = {"action": "accept", "content": {"name": "Ann"}}


def post(path, message, headers=()):
    body = json.dumps(message, separators=(",", ":")).encode()
    lines = ["POST %s HTTP/1.1" % path, "Host: localhost",
             "Content-Type: application/json",
             "Accept: application/json, text/event-stream",
             "Content-Length: %d" % len(body)]
    lines += ["%s: %s" % header for header in headers]

    return "\r\n".join(lines + ["", ""]).encode() + body


def parts(request):
    """the headers of such a request, but for its length, and its body"""

    header, _, body = request.partition(b"\r\n\r\n")
    lines = header.decode().split("\r\n")[1:]
    return [x for x in lines if not x.startswith("Content-Length")], body


class Client:
    """What a client of one era sends to one path"""

    # six digits, so that all messages of a kind have the same length
    number = 100000

    def __init__(self, path, era, session=None, **capabilities):
        self.path = path
        self.era = era
        self.session = session
        self.capabilities = dict(CAPABILITIES, **capabilities)

    def request(self, method, about=None, **params):
        Client.number += 1
        message = {"jsonrpc": "2.0", "id": Client.number, "method": method}
        headers = [("MCP-Protocol-Version", VERSIONS[self.era])]

        if self.era == "modern":
            params.setdefault("_meta", {}).update({
                "io.modelcontextprotocol/protocolVersion":
                    VERSIONS[self.era],
                "io.modelcontextprotocol/clientInfo":
                    {"name": "bench", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities":
                    self.capabilities})
            headers.append(("Mcp-Method", method))
            if about:
                headers.append(("Mcp-Name", about))

        elif self.session:
            headers.append(("Mcp-Session-Id", self.session))

        return post(self.path, dict(message, params=params), headers)

    def initialize(self):
        return self.request("initialize", capabilities={},
                            protocolVersion=VERSIONS["legacy"],
                            clientInfo={"name": "bench", "version": "1"})

    def call(self, task=True, token=None):
        params = {"name": "bench", "arguments": {"text": "x" * 64}}
        if token:
            params["_meta"] = {"progressToken": token}
        if task and self.era == "legacy":
            params["task"] = {"ttl": 3600000}
        return self.request("tools/call", "bench", **params)

    def get(self, task):
        return self.request("tasks/get", task, taskId=task)

    def result(self, task):
        return self.request("tasks/result", task, taskId=task)

    def list(self):
        return self.request("tasks/list")

    def update(self, task):
        return self.request("tasks/update", task, taskId=task,
                            inputResponses={"name": ANSWER})

    def progress(self, token, progress):
        return self.request("tasks/progress", progressToken=token,
                            progress=progress, total=999999,
                            message="working")


def worker(path, method, **params):
    return post(path, {"jsonrpc": "2.0", "id": 1,
                       "method": "worker/" + method, "params": params})


def claim(path, most=1):
    return worker(path, "claim", tools=["bench"], max=most)


def complete(path, task, lease, size=32):
    return worker(path, "complete", taskId=task, lease=lease, result={
        "content": [{"type": "text", "text": "x" * (size - 42)}]})


def question(path, task, lease):
    return worker(path, "ask", taskId=task, lease=lease,
                  inputRequests={"name": QUESTION})


def answers(path, task, lease):
    return worker(path, "answers", taskId=task, lease=lease, waitMs=30000)


def claims(connection, path):
    """all tasks in the queue, each with its lease token"""

    found = []

    while True:
        _, body = connection.ask(claim(path, 32))
        tasks = CLAIMED.findall(body)
        if not tasks:
            return found
        found += [(task.decode(), lease.decode()) for task, lease in tasks]


class Connection:
    """one request after the other"""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))

    def ask(self, request):
        """the header and the body of the answer"""

        self.socket.sendall(request)
        data = b""

        while b"\r\n\r\n" not in data:
            data += self.more()

        header, _, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", header)

        # without a length it comes in chunks, and these need not be joined
        while (len(body) < int(length.group(1)) if length
               else not body.endswith(b"0\r\n\r\n")):
            body += self.more()

        return header, body

    def more(self):
        got = self.socket.recv(1 << 20)
        if not got:
            raise EOFError("the server has closed the connection")
        return got

    def close(self):
        self.socket.close()


def session_of(header):
    """that a server has begun"""

    return SESSION.search(header).group(1).decode()


def ids_of(port, client):
    """of all tasks, page by page"""

    connection = Connection(port)
    params = {"limit": 100}
    ids = []

    while True:
        _, body = connection.ask(client.request("tasks/list", **params))
        ids += [task.decode() for task in TASK_ID.findall(body)]
        cursor = CURSOR.search(body)
        if not cursor:
            break
        params["cursor"] = cursor.group(1).decode()

    connection.close()
    return ids
