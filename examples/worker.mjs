#!/usr/bin/env node
// A worker for Node 18 or later, without dependencies.
//
//     examples/worker.mjs http://127.0.0.1:8080/worker

const url = process.argv[2] ?? "http://127.0.0.1:8080/worker";

const sleep = (seconds) => new Promise((f) => setTimeout(f, seconds * 1000));
const text = (s, more) => ({ content: [{ type: "text", text: s }], ...more });

// The task is not ours any more: cancelled, out of time, or lost.
class Gone extends Error {}

async function rpc(method, params) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  for (;;) {
    let response, answer;
    try {
      response = await fetch(url, {
        method: "POST", body, headers: { "Content-Type": "application/json" },
      });
      answer = await response.json();
    } catch (e) {                                   // nginx is being restarted
      console.error(`waiting for nginx: ${e.cause ?? e}`);
      await sleep(1);
      continue;
    }
    if (answer.result) return answer.result;
    if (answer.error.code === -32011) throw new Gone(answer.error.data.reason);
    throw new Error(answer.error.message);
  }
}

async function pause(held, seconds) {
  for (; seconds > 10; seconds -= 10) {             // the lease lasts for 30 s
    await sleep(10);
    await rpc("worker/heartbeat", held);
  }
  await sleep(seconds);
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

  async greet(held) {
    await rpc("worker/ask", { ...held, inputRequests: { name: {
      method: "elicitation/create",
      params: { mode: "form", message: "What is your name?",
                requestedSchema: { type: "object",
                                   properties: { name: { type: "string" } },
                                   required: ["name"] } } } } });
    let answer;
    while (!answer) {
      const wait = { ...held, waitMs: 30000 };
      answer = (await rpc("worker/answers", wait)).inputResponses.name;
    }
    if (answer.action !== "accept")
      return text("no name, no greeting", { isError: true });
    return text(`Hello, ${answer.content.name}!`);
  },

  async fail(held, { how }) {
    if (how !== "protocol")
      return text("this never works", { isError: true });
    await rpc("worker/fail",
              { ...held, error: { code: -32050, message: "broken" } });
  },
};

let working;                                        // what to give back

for (const signal of ["SIGINT", "SIGTERM"])
  process.on(signal, async () => {
    if (working) await rpc("worker/release", working).catch(() => {});
    process.exit(0);
  });

for (;;) {
  const claim = { tools: Object.keys(tools), waitMs: 30000 };
  for (const task of (await rpc("worker/claim", claim)).tasks) {
    const held = working = { taskId: task.taskId, lease: task.lease };
    try {
      const result = await tools[task.tool](held, task.arguments);
      if (result) await rpc("worker/complete", { ...held, result });
    } catch (e) {
      console.error(`${task.taskId}: ${e.message}`);
      const error = { code: -32603, message: e.message };
      if (!(e instanceof Gone))                     // our own fault: once more?
        await rpc("worker/fail", { ...held, error, retryable: true });
    }
    working = undefined;
  }
}
