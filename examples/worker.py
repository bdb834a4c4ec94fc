#!/usr/bin/env python3
"""A worker in Python, with the standard library only.

    examples/worker.py http://127.0.0.1:8080/worker
"""

import json
import sys
import time
import urllib.request

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080/worker"


class Gone(Exception):
    """The task is not ours any more: cancelled, expired, or taken over."""


def rpc(method, **params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method,
                       "params": params}).encode()
    request = urllib.request.Request(
        URL, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=90) as response:
        answer = json.load(response)
    if "error" in answer:
        raise Gone(answer["error"])
    return answer["result"]


def text(s, **more):
    return {"content": [{"type": "text", "text": s}], **more}


def count(held, arguments):
    to = arguments.get("to", 10)
    for i in range(to):
        time.sleep(arguments.get("delay", 1))
        rpc("worker/progress", **held, progress=i + 1, total=to,
            message=f"at {i + 1}")
    return text(f"counted to {to}")


def greet(held, arguments):
    rpc("worker/ask", **held, inputRequests={"name": {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "What is your name?",
                   "requestedSchema": {
                       "type": "object",
                       "properties": {"name": {"type": "string"}},
                       "required": ["name"]}}}})
    answers = {}
    while "name" not in answers:
        answers = rpc("worker/answers", **held, waitMs=30000)["inputResponses"]
    answer = answers["name"]
    if answer.get("action") != "accept":
        return text("no name, no greeting", isError=True)
    return text(f"Hello, {answer['content']['name']}!")


def fail(held, arguments):
    if arguments.get("how") == "protocol":
        rpc("worker/fail", **held, error={"code": -32050, "message": "broken"})
        return None
    return text("this never works", isError=True)


TOOLS = {"count": count, "greet": greet, "fail": fail}

while True:
    try:
        tasks = rpc("worker/claim", tools=list(TOOLS), waitMs=30000)["tasks"]
    except OSError as e:
        print(f"waiting for nginx: {e}", file=sys.stderr)
        time.sleep(1)
        continue
    for task in tasks:
        held = {"taskId": task["taskId"], "lease": task["lease"]}
        try:
            result = TOOLS[task["tool"]](held, task["arguments"])
            if result is not None:
                rpc("worker/complete", **held, result=result)
        except Gone as e:
            print(f"{task['taskId']}: {e}", file=sys.stderr)
