#!/usr/bin/env node
// A worker for Node.js 18 or later, without dependencies.
//
//     examples/worker.mjs http://127.0.0.1:8080/worker

import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

const url = process.argv[2] ?? "http://127.0.0.1:8080/worker";
const sleep = (seconds) => new Promise((f) => setTimeout(f, seconds * 1000));
const text = (s, more) => ({ content: [{ type: "text", text: s }], ...more });
let stopping = false;                               // do not claim more tasks

// The lease is no longer valid: the task has ended, or the lease has expired.
class Gone extends Error {}

async function rpc(method, params) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "Content-Type": "application/json" };
  for (;;) {
    const signal = AbortSignal.timeout(stopping ? 3000 : 90000);
    const answer = await fetch(url, { method: "POST", body, headers, signal })
      .then((r) => r.status < 500 ? r.json() : Promise.reject(r.statusText))
      .catch((e) => console.error(`waiting for nginx: ${e.cause ?? e}`));
    if (answer?.result) return answer.result;
    if (answer?.error.code === -31011) throw new Gone(answer.error.data.reason);
    if (answer?.error.data?.reason === "task_state_invalid")
      return {};                                    // worker/ask was repeated
    if (answer) throw new Error(answer.error.message);
    if (stopping) throw new Gone("nginx does not respond");
    await sleep(1);                                 // restart, or store failed
  }
}

async function pause(held, seconds) {
  for (; seconds > 10; seconds -= 10) {             // the lease is 30 s
    await sleep(10);
    await rpc("worker/heartbeat", held);
  }
  await sleep(seconds);
}

// Asks what was not answered in an earlier attempt, and waits for all answers.
async function ask(held, inputRequests, task = {}) {
  for (const key in task.inputResponses) delete inputRequests[key];
  const keys = Object.keys(inputRequests);
  if (keys.length) await rpc("worker/ask", { ...held, inputRequests });
  for (;;) {
    const got = await rpc("worker/answers", { ...held, waitMs: 30000 });
    if (keys.every((k) => k in got.inputResponses)) return got.inputResponses;
  }
}

const tools = {
  async count(held, { to, delay = 1 }) {
    for (let i = 1; i <= to; i++) {
      await pause(held, delay);
      await rpc("worker/progress",
                { ...held, progress: i, total: to, message: `at ${i}` });
    }
    return text(`counted to ${to}`);
  },

  async greet(held, _, task) {
    const requestedSchema = { type: "object", required: ["name"],
                              properties: { name: { type: "string" } } };
    const { name } = await ask(held, { name: { method: "elicitation/create",
      params: { mode: "form", message: "What is your name?", requestedSchema },
    } }, task);
    if (name.action !== "accept")
      return text("no name, no greeting", { isError: true });
    return text(`Hello, ${name.content.name}!`);
  },

  async fail(held, { how }) {
    if (how !== "protocol") return text("this never works", { isError: true });
    const error = { code: -32050, message: "broken" };
    await rpc("worker/fail", { ...held, error });
  },
};

const taken = new Set();                            // tasks to release on exit

async function work(tools, task) {
  const held = { taskId: task.taskId, lease: task.lease };
  taken.add(held);
  try {
    const result = await tools[task.tool](held, task.arguments, task);
    if (result) await rpc("worker/complete", { ...held, result });
  } catch (e) {
    console.error(`${task.taskId}: ${e.message}`);
    const error = { code: -32603, message: e.message };
    if (!(e instanceof Gone))                       // worker error: retry
      await rpc("worker/fail", { ...held, error, retryable: true });
  }
  taken.delete(held);
}

// Runs one task at a time, or with "atOnce" all available tasks concurrently.
async function serve(tools, atOnce = false, worker = "worker.mjs") {
  for (const signal of ["SIGINT", "SIGTERM"])
    process.on(signal, async () => {
      stopping = true;
      await Promise.allSettled([...taken].map((h) => rpc("worker/release", h)));
      process.exit(0);
    });
  while (!stopping) {
    const claim = { tools: Object.keys(tools), waitMs: 30000, worker };
    const { tasks, drain } = await rpc("worker/claim", claim);
    for (const task of tasks) {
      const done = work(tools, task).catch((e) => console.error(e.message));
      if (!atOnce) await done;
    }
    if (drain) await sleep(1);                      // drain: claim later
  }
}

export { ask, rpc, serve, sleep, text };            // for other workers
if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  await serve(tools);
