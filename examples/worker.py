#!/usr/bin/env python3
"""A worker in Python, with the standard library only.

    examples/worker.py http://127.0.0.1:8080/worker
"""

import contextlib
import json
import signal
import sys
import time
from urllib.request import Request, urlopen

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080/worker"


class Gone(Exception):
    """The lease is invalid: the task has ended, or the lease has expired."""


def rpc(method, **params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method,
                       "params": params}).encode()
    request = Request(URL, body, {"Content-Type": "application/json"})
    while True:
        try:
            with urlopen(request, timeout=3 if stopping else 90) as response:
                answer = json.load(response)
            break
        except OSError as e:                        # nginx is being restarted,
            if getattr(e, "code", 503) < 500:       # or its store has failed
                sys.exit(f"{URL}: {e}")
            if stopping:
                raise Gone("nginx does not respond") from e
            print(f"waiting for nginx: {e}", file=sys.stderr)
            time.sleep(1)
    if "error" not in answer:
        return answer["result"]
    reason = answer["error"].get("data", {}).get("reason")
    if answer["error"]["code"] == -31011:
        raise Gone(reason)
    if reason == "task_state_invalid":              # worker/ask was repeated:
        return None                                 # the questions are open
    raise RuntimeError(answer["error"]["message"])


def text(s, **more):
    return {"content": [{"type": "text", "text": s}], **more}


def pause(held, seconds):
    while seconds > 10:                             # the lease is 30 s
        time.sleep(10)
        rpc("worker/heartbeat", **held)
        seconds -= 10
    time.sleep(seconds)


def count(held, arguments, task):
    to = arguments["to"]
    for i in range(1, to + 1):
        pause(held, arguments.get("delay", 1))
        rpc("worker/progress", **held, progress=i, total=to, message=f"at {i}")
    return text(f"counted to {to}")


def greet(held, arguments, task):
    answers = task.get("inputResponses", {})        # of an earlier attempt
    if "name" not in answers:
        rpc("worker/ask", **held, inputRequests={"name": {
            "method": "elicitation/create",
            "params": {"mode": "form", "message": "What is your name?",
                       "requestedSchema": {
                           "type": "object", "required": ["name"],
                           "properties": {"name": {"type": "string"}}}}}})
    while "name" not in answers:
        answers = rpc("worker/answers", **held, waitMs=30000)["inputResponses"]
    if answers["name"].get("action") != "accept":
        return text("no name, no greeting", isError=True)
    return text(f"Hello, {answers['name']['content']['name']}!")


def fail(held, arguments, task):
    if arguments.get("how") != "protocol":
        return text("this never works", isError=True)
    rpc("worker/fail", **held, error={"code": -32050, "message": "broken"})


TOOLS = {"count": count, "greet": greet, "fail": fail}

stopping = []


def stop(*_):
    if not stopping:                                # ignore further signals
        stopping.append(True)                       # while exiting
        sys.exit(0)


signal.signal(signal.SIGINT, stop)
signal.signal(signal.SIGTERM, stop)

while True:
    got = rpc("worker/claim", tools=[*TOOLS], waitMs=30000, worker="worker.py")
    for task in got["tasks"]:
        held = {"taskId": task["taskId"], "lease": task["lease"]}
        try:
            result = TOOLS[task["tool"]](held, task["arguments"], task)
            if result is not None:
                rpc("worker/complete", **held, result=result)
        except Gone as e:
            print(f"{task['taskId']}: {e}", file=sys.stderr)
        except SystemExit:
            with contextlib.suppress(Gone):
                rpc("worker/release", **held)       # for another worker
            raise
        except Exception as e:                      # worker error: retry
            rpc("worker/fail", **held, retryable=True,
                error={"code": -32603, "message": str(e)})
    time.sleep(1 if got["drain"] else 0)            # drain: claim later
