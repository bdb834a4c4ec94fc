// The TypeScript SDK of the 2025-11-25 era, with its experimental client for
// tasks: whole lives of tasks, and a client that knows nothing of them.

import assert from "node:assert/strict";
import { once, EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { ElicitRequestSchema, TaskStatusNotificationSchema }
  from "@modelcontextprotocol/sdk/types.js";
import { answers, create, legacyClients, refused, related, result, stream,
         types, until } from "./clients-legacy.mjs";
import * as report from "./report.mjs";

const defaults = { path: "/named", owner: "ann" };
const { connect, answering, close } = legacyClients(defaults);


// loses the connection of a call after its first event; remembers what the
// client resumes
const cutting = (resumed) => async (url, init) => {
  const response = await fetch(url, init);
  const last = new Headers(init.headers).get("last-event-id");
  if (last) resumed.push(last);

  const type = response.headers.get("content-type") ?? "";
  if (init.method !== "POST" || !type.startsWith("text/event-stream"))
    return response;

  const reader = response.body.getReader();
  const cut = async (controller) => {
    await reader.cancel();
    controller.error(new Error("connection lost"));
  };

  let chunks = 0;
  const body = new ReadableStream({
    async pull(controller) {
      if (chunks++) return cut(controller);
      controller.enqueue((await reader.read()).value);
    },
  });
  return new Response(body, response);
};


const tests = {

  async "initialize, and what the server says it can do"() {
    const client = await connect();
    assert.equal(client.transport.protocolVersion, "2025-11-25");
    assert.ok(client.transport.sessionId);
    const { tools, tasks } = client.getServerCapabilities();
    assert.ok(tools);
    assert.ok(tasks.requests.tools.call);
    assert.ok(tasks.cancel);
    assert.ok(tasks.list);
    await client.ping();
  },

  async "no listing for clients without a name"() {
    const client = await connect({ path: "/mcp", owner: "" });
    assert.equal(client.getServerCapabilities().tasks.list, undefined);
  },

  async "tools, and which of them are for tasks"() {
    const client = await connect();
    const { tools } = await client.listTools();
    const support = Object.fromEntries(
      tools.map((t) => [t.name, t.execution?.taskSupport]));
    assert.equal(support.greet ?? "forbidden", "forbidden");
    assert.equal(support.slow_compute, "optional");
    assert.equal(support.failing_job, "required");
  },

  async "create, get, result"() {
    const client = await connect();
    const task = await create(client, "slow_compute", { seconds: 1 },
                              { ttl: 60000 });
    assert.equal(task.status, "working");
    assert.equal(task.ttl, 60000);
    const got = await client.experimental.tasks.getTask(task.taskId);
    assert.equal(got.taskId, task.taskId);
    const { content, _meta } = await result(client, task.taskId);
    assert.match(content[0].text, /computed/);
    assert.equal(_meta[related].taskId, task.taskId);
    const end = await client.experimental.tasks.getTask(task.taskId);
    assert.equal(end.status, "completed");
  },

  async "stream"() {
    const client = await connect();
    const messages = await stream(client, "count", { to: 3, delay: 0.2 });
    assert.deepEqual(types(messages), ["taskCreated", "taskStatus", "result"]);
    assert.equal(messages.at(-1).result.content[0].text, "counted to 3");
  },

  async "list, page by page"() {
    const client = await connect({ owner: "bob" });
    const made = await Promise.all(Array.from({ length: 60 }, () =>
      create(client, "count", { to: 0 })));
    const listed = new Set();
    let pages = 0;

    for (let cursor; ;) {
      const page = await client.experimental.tasks.listTasks(cursor);
      for (const task of page.tasks) listed.add(task.taskId);
      pages++;
      if (!(cursor = page.nextCursor)) break;
    }

    assert.ok(pages > 1);
    for (const { taskId } of made) assert.ok(listed.has(taskId));
  },

  async "another client's tasks do not exist"() {
    const bob = await connect({ owner: "bob" });
    const eve = await connect({ owner: "eve" });
    const { taskId } = await create(bob, "slow_compute", { seconds: 30 });
    assert.deepEqual((await eve.experimental.tasks.listTasks()).tasks, []);
    await assert.rejects(eve.experimental.tasks.getTask(taskId),
                         refused(-32602));
    await assert.rejects(eve.experimental.tasks.cancelTask(taskId),
                         refused(-32602));
    await bob.experimental.tasks.cancelTask(taskId);
  },

  async "cancel"() {
    const client = await connect();
    const { taskId } = await create(client, "slow_compute", { seconds: 30 });
    const cancelled = await client.experimental.tasks.cancelTask(taskId);
    assert.equal(cancelled.status, "cancelled");
    assert.equal(cancelled.taskId, taskId);
    await assert.rejects(client.experimental.tasks.cancelTask(taskId),
                         refused(-32602));
    await assert.rejects(result(client, taskId));
  },

  async "cancel while the result is awaited"() {
    const client = await connect();
    const { taskId } = await create(client, "slow_compute", { seconds: 30 });
    const waiting = result(client, taskId);
    waiting.catch(() => {});
    await sleep(200);
    await client.experimental.tasks.cancelTask(taskId);
    await assert.rejects(waiting);
  },

  async "elicitation through tasks/result"() {
    const { client, asked } = await answering({ confirm: true });
    const { taskId } = await create(client, "confirm_delete",
                                    { filename: "a.txt" });
    const { content } = await result(client, taskId);
    assert.match(content[0].text, /"confirm":true/);
    assert.equal(asked.length, 1);
    assert.match(asked[0].params.message, /a\.txt/);
    assert.equal(asked[0].params._meta[related].taskId, taskId);
  },

  async "elicitation in a stream of a call"() {
    const { client, asked } = await answering({ confirm: true });
    const messages = await stream(client, "confirm_delete",
                                  { filename: "b.txt" });
    assert.equal(messages.at(-1).type, "result");
    assert.equal(asked.length, 1);
  },

  async "several questions at a time"() {
    const { client, asked } = await answering({ name: "Ann", color: "red" });
    const { taskId } = await create(client, "multi_input", {});
    const { content } = await result(client, taskId);
    assert.equal(asked.length, 2);

    // in whichever order the client's answers came
    assert.match(content[0].text, /"first"/);
    assert.match(content[0].text, /"second"/);
  },

  async "sampling through tasks/result"() {
    const { client, asked } = await answering();
    const { taskId } = await create(client, "ask_model", { prompt: "6 x 9?" });
    const { content } = await result(client, taskId);
    assert.match(content[0].text, /forty-two/);
    assert.equal(asked[0].params.messages[0].content.text, "6 x 9?");
  },

  async "the user declines"() {
    const client = await connect({ capabilities: answers });
    client.setRequestHandler(ElicitRequestSchema,
                             async () => ({ action: "decline" }));
    const { taskId } = await create(client, "confirm_delete", {});
    const { content } = await result(client, taskId);
    assert.match(content[0].text, /"decline"/);
  },

  async "a client that cannot answer is not asked"() {
    const client = await connect();
    const { taskId } = await create(client, "confirm_delete", {});
    await until(client, taskId, "input_required");
    const task = await client.experimental.tasks.cancelTask(taskId);
    assert.equal(task.status, "cancelled");
  },

  async "the question while nobody waits for the result"() {
    const { client, asked } = await answering({ confirm: true });
    const { taskId } = await create(client, "confirm_delete", {});
    await until(client, taskId, "completed");
    assert.equal(asked.length, 1);
  },

  async "a tool's own error"() {
    const client = await connect();
    const { taskId } = await create(client, "failing_job", {});
    const { isError, content } = await result(client, taskId);
    assert.equal(isError, true);
    assert.match(content[0].text, /always fails/);
    const task = await client.experimental.tasks.getTask(taskId);
    assert.equal(task.status, "failed");
  },

  async "a protocol error"() {
    const client = await connect();
    const { taskId } = await create(client, "protocol_error_job", {});
    await assert.rejects(result(client, taskId), refused(-32603));
    const messages = await stream(client, "protocol_error_job", {});
    assert.equal(messages.at(-1).type, "error");
  },

  async "expiry"() {
    const client = await connect();
    const { taskId, ttl } = await create(client, "brief", {}, { ttl: 500 });
    assert.equal(ttl, 500);
    await result(client, taskId);
    await sleep(2500);
    await assert.rejects(client.experimental.tasks.getTask(taskId),
                         refused(-32602));
  },

  async "progress of a task"() {
    const client = await connect();
    const seen = [];
    const messages = await stream(client, "count", { to: 4, delay: 0.2 },
                                  { onprogress: (p) => seen.push(p) });
    assert.equal(messages.at(-1).type, "result");
    assert.equal(seen.at(-1)?.progress, 4);
    assert.ok(seen.every((p) => p.total === 4));
    assert.deepEqual(seen.map((p) => p.progress),
                     seen.map((p) => p.progress).sort());
  },

  async "status notifications"() {
    const client = await connect();
    const events = new EventEmitter();
    client.setNotificationHandler(TaskStatusNotificationSchema,
      ({ params }) => events.emit(`${params.taskId} ${params.status}`));
    const { taskId } = await create(client, "slow_compute", { seconds: 1 });
    await once(events, `${taskId} completed`);
  },

  async "a task outlives its client"() {
    const first = await connect({ owner: "kim" });
    const { taskId } = await create(first, "slow_compute", { seconds: 2 });
    await first.close();
    const second = await connect({ owner: "kim" });
    const { content } = await result(second, taskId);
    assert.match(content[0].text, /computed/);
  },

  async "a client that knows nothing of tasks"() {
    const { client, asked } = await answering({ confirm: true },
                                              { path: "/mcp", owner: "" });
    const seen = [];
    const counted = await client.callTool(
      { name: "count", arguments: { to: 3 } }, undefined,
      { onprogress: (p) => seen.push(p.progress) });
    assert.equal(counted.content[0].text, "counted to 3");
    assert.deepEqual(seen, [1, 2, 3]);
    await client.callTool({ name: "confirm_delete", arguments: {} });
    assert.equal(asked.length, 1);
    const failed = await client.callTool({ name: "test_error_handling" });
    assert.equal(failed.isError, true);
    await assert.rejects(client.callTool({ name: "protocol_error_job" }),
                         refused(-32603));
    await assert.rejects(client.callTool({ name: "failing_job" }),
                         refused(-32601));
    await assert.rejects(client.callTool({ name: "nothing" }),
                         refused(-32602));
  },

  async "a plain call whose stream is cut is resumed"() {
    const resumed = [];
    const client = await connect({ fetch: cutting(resumed) });
    const seen = [];
    const counted = await client.callTool(
      { name: "count", arguments: { to: 4, delay: 0.2 } }, undefined,
      { onprogress: (p) => seen.push(p.progress) });
    assert.equal(counted.content[0].text, "counted to 4");
    assert.equal(resumed.length, 1);
    assert.match(resumed[0], /^r-/);
    assert.deepEqual(seen, [...new Set(seen)].sort());
  },

  async "a plain call that is aborted is cancelled"() {
    const client = await connect({ owner: "abe" });
    const stop = new AbortController();
    await assert.rejects(client.callTool(
      { name: "count", arguments: { to: 100, delay: 0.2 } }, undefined,
      { signal: stop.signal, onprogress: () => stop.abort("enough") }));

    for (;;) {
      const { tasks } = await client.experimental.tasks.listTasks();
      assert.equal(tasks.length, 1);
      if (tasks[0].status === "cancelled") break;
      await sleep(50);
    }
  },

  async "structured content"() {
    const client = await connect();
    await client.listTools();
    const plain = await client.callTool(
      { name: "structured", arguments: { city: "Oslo" } });
    assert.deepEqual(plain.structuredContent, { city: "Oslo", degrees: 21.5 });
    const messages = await stream(client, "structured", { city: "Oslo" });
    assert.equal(messages.at(-1).type, "result");
  },

  async "a session that has ended"() {
    const client = await connect();
    const { transport } = client;
    const id = transport.sessionId;
    await transport.terminateSession();
    const response = await fetch(`${defaults.base}/named`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Mcp-Session-Id": id,
                 "X-Owner": "ann",
                 Accept: "application/json, text/event-stream" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
    });
    assert.equal(response.status, 404);
  },
};


export async function run({ url }) {
  report.heading("TypeScript SDK 1.32, 2025-11-25");
  defaults.base = url;

  for (const [name, body] of Object.entries(tests)) {
    await report.test(`${name} (SDK 1.32)`, body);
    await close();
  }
}
