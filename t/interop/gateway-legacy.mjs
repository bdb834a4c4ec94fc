// The gateway in front of servers of 2025-11-25 that know nothing of tasks,
// with the SDK of that era as a client, and how it refuses clients of the next.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { ElicitRequestSchema, LoggingMessageNotificationSchema }
  from "@modelcontextprotocol/sdk/types.js";
import { answers, create, legacyClients, refused, related, result, stream,
         types, until } from "./clients-legacy.mjs";
import { modernClients } from "./clients-modern.mjs";
import { answer, legacy, messages } from "./wire.mjs";
import * as report from "./report.mjs";

const defaults = { path: "/legacy/mcp", owner: "ann" };
const { connect, answering, close } = legacyClients(defaults);
const later = modernClients(defaults);

let plain, seen;


// a name that no other call has
let calls = 0;
const label = () => `legacy-${++calls}`;

// what the server was asked, as soon as it was
async function asked(matches) {
  for (;;) {
    const { requests } = await seen("legacy");
    const found = requests.find(({ body, headers }) =>
      body && matches(body, headers));
    if (found) return found;
    await sleep(50);
  }
}

// that its call does not go on, in this session
const told = ({ transport }, { body: { id } }) => asked((body, headers) =>
  body.method === "notifications/cancelled" && body.params.requestId === id
  && headers["mcp-session-id"] === transport.sessionId);

const called = (name) => asked(({ method, params }) =>
  method === "tools/call" && params.arguments?.label === name);

// as soon as the server's tool has given up
async function abandoned(name) {
  while (!(await seen("legacy")).cancelled.some((it) => it.label === name))
    await sleep(50);
}

// as soon as the client's own stream is open: it does not wait for that
async function listening({ transport: { sessionId } }) {
  while (!(await seen("legacy")).requests.some(({ method, headers }) =>
    method === "GET" && headers["mcp-session-id"] === sessionId))
    await sleep(50);
  await sleep(100);
}

function withoutTask({ _meta: { [related]: task, ..._meta } = {}, ...rest }) {
  return Object.keys(_meta).length ? { ...rest, _meta } : rest;
}

const failure = async (client, id) => {
  const error = await result(client, id).then(() => undefined, (e) => e);
  assert.ok(error, "it has not failed");
  return error;
};


// with the gateway, and without it: nothing may be different
const plainly = {

  async "a call"() {
    const client = await connect();
    const { content } = await client.callTool(
      { name: "echo", arguments: { text: "h\u00e9" } });
    assert.equal(content[0].text, "h\u00e9");
    await client.ping();
  },

  async "progress and messages arrive while it works"() {
    const client = await connect();
    const steps = [];
    const logged = [];
    client.setNotificationHandler(LoggingMessageNotificationSchema,
      ({ params }) => { logged.push(params.data); });
    const name = label();
    const { content } = await client.callTool(
      { name: "slow", arguments: { ms: 800, label: name } }, undefined,
      { onprogress: ({ progress }) => steps.push([progress, Date.now()]) });
    const end = Date.now();
    assert.equal(content[0].text, "worked 800 ms");
    assert.deepEqual(steps.map(([progress]) => progress), [1, 2, 3, 4]);
    assert.ok(end - steps[0][1] > 300, "all came at once");
    assert.deepEqual(logged, [`${name} has begun`]);
  },

  async "questions on the stream of the call"() {
    const { client, asked } = await answering({ name: "Ann" });
    const { content } = await client.callTool(
      { name: "ask", arguments: { label: label(), twice: true } });
    assert.deepEqual(JSON.parse(content[0].text).map((it) => it.content),
                     [{ name: "Ann" }, { name: "Ann" }]);
    assert.equal(asked.length, 2);
    const said = await client.callTool({ name: "sample", arguments: {} });
    assert.equal(said.content[0].text, "The model says forty-two");
  },

  async "questions on the session's stream"() {
    const { client, asked } = await answering({ name: "Ann" });
    await listening(client);
    await client.callTool({ name: "ask",
                            arguments: { label: label(), aside: true } });
    assert.equal(asked.length, 1);
  },

  async "errors"() {
    const client = await connect();
    const failed = await client.callTool({ name: "fail", arguments: {} });
    assert.equal(failed.isError, true);
    await assert.rejects(client.callTool({ name: "throws" }), refused(-32042));
    const { isError } = await client.callTool({ name: "nothing" });
    assert.equal(isError, true);
  },

  async "giving up a call"() {
    const client = await connect();
    const stop = new AbortController();
    const name = label();
    const waiting = client.callTool(
      { name: "slow", arguments: { ms: 30000, label: name } }, undefined,
      { signal: stop.signal });
    waiting.catch(() => {});
    await called(name);
    stop.abort();
    await assert.rejects(waiting);
    await abandoned(name);
  },

  async "structured content"() {
    const client = await connect();
    await client.listTools();
    const { structuredContent } = await client.callTool(
      { name: "structured", arguments: { city: "Oslo" } });
    assert.deepEqual(structuredContent, { city: "Oslo", degrees: 21.5 });
  },

  async "a server that answers with JSON"() {
    const client = await connect({ path: "/legacy/json" });
    const { content } = await client.callTool(
      { name: "slow", arguments: { ms: 300 } });
    assert.equal(content[0].text, "worked 300 ms");
  },

  async "a server that closes a stream, to be resumed"() {
    const client = await connect({ path: "/legacy/resumable" });
    const { content } = await client.callTool(
      { name: "polled", arguments: { ms: 800 } });
    assert.equal(content[0].text, "it went on");
  },

  async "the end of a session"() {
    const client = await connect();
    const { sessionId } = client.transport;
    await client.transport.terminateSession();
    const response = await legacy(defaults.base + defaults.path,
      { method: "ping" }, { headers: { "Mcp-Session-Id": sessionId } });
    assert.equal(response.status, 404);
    await answer(response);
  },

  async "no session"() {
    const response = await legacy(defaults.base + defaults.path,
                                  { method: "tools/list" });
    assert.equal(response.status, 400);
    const { error } = await answer(response);
    assert.match(error.message, /session/);
  },
};


const asTasks = {

  async "initialize: the server's own answer, and tasks"() {
    const client = await connect();
    assert.equal(client.getServerVersion().name, "upstream-legacy");
    const { tools, logging, tasks } = client.getServerCapabilities();
    assert.ok(tools);
    assert.ok(logging);
    assert.ok(tasks.requests.tools.call);
    assert.ok(tasks.cancel);
    const { sessionId } = client.transport;
    const { requests } = await seen("legacy");
    assert.ok(requests.some(({ headers }) =>
      headers["mcp-session-id"] === sessionId));
  },

  async "a client of 2025-06-18 hears nothing of tasks"() {
    const url = defaults.base + defaults.path;
    const protocolVersion = "2025-06-18";
    const response = await legacy(url, { method: "initialize", params: {
      protocolVersion, capabilities: {},
      clientInfo: { name: "old", version: "1" } } },
      { headers: { "MCP-Protocol-Version": protocolVersion } });
    const sessionId = response.headers.get("mcp-session-id");
    const headers = { "MCP-Protocol-Version": protocolVersion,
                      "Mcp-Session-Id": sessionId };
    const { result: { capabilities } } = await answer(response);
    assert.ok(capabilities.tools);
    assert.equal(capabilities.tasks, undefined);
    const { result: { tools } } =
      await answer(legacy(url, { method: "tools/list" }, { headers }));
    assert.ok(tools.every((tool) =>
      (tool.execution?.taskSupport ?? "forbidden") === "forbidden"));
  },

  async "tools: as they are, and which of them are for tasks"() {
    const client = await connect();
    const bare = await connect({ base: plain });
    const { tools } = await client.listTools();
    const without = (list) => list.map(({ execution, ...tool }) => tool);
    assert.deepEqual(without(tools), without((await bare.listTools()).tools));
    const support = Object.fromEntries(tools.map((tool) =>
      [tool.name, tool.execution?.taskSupport ?? "forbidden"]));
    assert.equal(support.echo, "optional");
    assert.equal(support.slow, "optional");
    assert.equal(support.must, "required");
    assert.equal(support.never, "forbidden");
    assert.equal(support.never_too, "forbidden");
  },

  async "create, get, result"() {
    const client = await connect();
    const { taskId, status, ttl } = await create(client, "slow", { ms: 1000 },
                                                 { ttl: 60000 });
    assert.equal(status, "working");
    assert.equal(ttl, 60000);
    const { content, _meta } = await result(client, taskId);
    assert.equal(content[0].text, "worked 1000 ms");
    assert.equal(_meta[related].taskId, taskId);
    const end = await client.experimental.tasks.getTask(taskId);
    assert.equal(end.status, "completed");
  },

  async "results are what the server said"() {
    const client = await connect();
    const bare = await connect({ base: plain });
    for (const [name, args] of [
      ["echo", { text: "a\u0000b \ud83d\ude00 \"" }], ["slow", { ms: 1 }],
      ["structured", { city: "Oslo" }], ["large", { kilobytes: 64 }],
      ["fail", {}], ["nothing", {}], ["slow", { ms: "x" }],
    ]) {
      const { taskId } = await create(client, name, args);
      assert.deepEqual(withoutTask(await result(client, taskId)),
                       await bare.callTool({ name, arguments: args }));
    }
  },

  async "errors are what the server said"() {
    const client = await connect();
    const bare = await connect({ base: plain });
    const { taskId } = await create(client, "throws", {});
    const error = await failure(client, taskId);
    const { code, message, data } =
      await bare.callTool({ name: "throws" }).catch((e) => e);
    assert.deepEqual([error.code, error.message, error.data],
                     [code, message, data]);
    const { status } = await client.experimental.tasks.getTask(taskId);
    assert.equal(status, "failed");
  },

  async "a tool's own error"() {
    const client = await connect();
    const { taskId } = await create(client, "fail", {});
    assert.equal((await result(client, taskId)).isError, true);
    const { status } = await client.experimental.tasks.getTask(taskId);
    assert.equal(status, "failed");
  },

  async "stream, with what it is at"() {
    const client = await connect();
    const heard = await stream(client, "slow", { ms: 2000 });
    assert.deepEqual(types(heard), ["taskCreated", "taskStatus", "result"]);
    assert.ok(heard.some(({ task }) =>
      /^step/.test(task?.statusMessage ?? "")));
    assert.equal(heard.at(-1).result.content[0].text, "worked 2000 ms");
  },

  async "events of a task, with progress"() {
    const client = await connect();
    const { taskId } = await create(client, "slow", { ms: 1200 });
    const response = await fetch(
      `${defaults.base}${defaults.path}/tasks/${taskId}/events`,
      { headers: { "X-Owner": "ann" } });
    const tasks = [];
    for await (const task of messages(response)) tasks.push(task);
    const steps = tasks.map((task) => task.progress).filter(Boolean);
    assert.ok(steps.length >= 2);
    assert.deepEqual(steps, [...steps].sort());
    assert.equal(steps.at(-1), 4);
    assert.equal(tasks.at(-1).status, "completed");
  },

  async "the server is told that a task is cancelled"() {
    const client = await connect();
    const name = label();
    const { taskId } = await create(client, "slow", { ms: 30000, label: name });
    const call = await called(name);
    assert.equal(call.body.params.task, undefined);
    const { status } = await client.experimental.tasks.cancelTask(taskId);
    assert.equal(status, "cancelled");
    await abandoned(name);
    await told(client, call);
    await assert.rejects(result(client, taskId));
  },

  async "elicitation through tasks/result"() {
    const { client, asked } = await answering({ name: "Ann" });
    const name = label();
    const { taskId } = await create(client, "ask", { label: name });
    const { content } = await result(client, taskId);
    assert.deepEqual(JSON.parse(content[0].text),
                     [{ action: "accept", content: { name: "Ann" } }]);
    assert.equal(asked.length, 1);
    assert.equal(asked[0].params.message, `What is your name, for ${name}?`);
    assert.deepEqual(asked[0].params.requestedSchema.required, ["name"]);
    assert.equal(asked[0].params._meta[related].taskId, taskId);
  },

  async "elicitation, twice, in a stream of a call"() {
    const { client, asked } = await answering({ name: "Ann" });
    const heard = await stream(client, "ask", { twice: true, label: label() });
    assert.equal(heard.at(-1).type, "result");
    assert.equal(asked.length, 2);
    assert.notEqual(asked[0].params.message, asked[1].params.message);
  },

  async "input_required while nobody has answered"() {
    const { client, asked } = await answering({ name: "Ann" });
    const { taskId } = await create(client, "ask", { label: label() });
    await until(client, taskId, "input_required");
    await result(client, taskId);
    assert.equal(asked.length, 1);
  },

  async "sampling through tasks/result"() {
    const { client, asked } = await answering();
    const { taskId } = await create(client, "sample", { label: "6 x 9?" });
    const { content } = await result(client, taskId);
    assert.equal(content[0].text, "The model says forty-two");
    assert.equal(asked[0].params.messages[0].content.text, "6 x 9?");
  },

  async "the user declines"() {
    const client = await connect({ capabilities: answers });
    client.setRequestHandler(ElicitRequestSchema,
                             async () => ({ action: "decline" }));
    const { taskId } = await create(client, "ask", { label: label() });
    const { content } = await result(client, taskId);
    assert.deepEqual(JSON.parse(content[0].text), [{ action: "decline" }]);
  },

  async "the client fails to answer"() {
    const client = await connect({ capabilities: answers });
    client.setRequestHandler(ElicitRequestSchema, async () => {
      throw new Error("no user");
    });
    const { taskId } = await create(client, "ask", { label: label() });
    const { isError, content } = await result(client, taskId);
    assert.equal(isError, true);
    assert.match(content[0].text, /no user/);
  },

  async "an answer that the server does not like"() {
    const { client } = await answering({ name: 1 });
    const { taskId } = await create(client, "ask", { label: label() });
    const { isError } = await result(client, taskId);
    assert.equal(isError, true);
  },

  async "the server takes its question back"() {
    const client = await connect({ capabilities: answers });
    const { taskId } = await create(client, "ask", { label: label(),
                                                     patience: 1500 });
    await until(client, taskId, "input_required");
    await until(client, taskId, "failed");
    assert.equal((await result(client, taskId)).isError, true);
  },

  async "a task is cancelled while it asks"() {
    const client = await connect({ capabilities: answers });
    const name = label();
    const { taskId } = await create(client, "ask", { label: name });
    await until(client, taskId, "input_required");
    await client.experimental.tasks.cancelTask(taskId);
    await told(client, await called(name));
  },

  async "a question of a task on the session's stream"() {
    const { client, asked } = await answering({ name: "Ann" });
    await listening(client);
    const { taskId } = await create(client, "ask", { label: label(),
                                                     aside: true });
    const { content } = await result(client, taskId);
    assert.match(content[0].text, /Ann/);
    assert.equal(asked.length, 1);
  },

  async "tools that must be tasks, and that cannot be"() {
    const client = await connect();
    await assert.rejects(client.callTool({ name: "must", arguments: {} }),
                         refused(-32601));
    const { taskId } = await create(client, "must", { text: "x" });
    assert.equal((await result(client, taskId)).content[0].text, "x");
    const { content } = await client.callTool(
      { name: "never", arguments: { text: "y" } });
    assert.equal(content[0].text, "y");
    await assert.rejects(create(client, "never", {}), refused(-32601));
    await assert.rejects(create(client, "never_too", {}), refused(-32601));
  },

  async "a task outlives its client"() {
    const first = await connect({ owner: "kim" });
    const { taskId } = await create(first, "slow", { ms: 2000 });
    await first.close();
    const second = await connect({ owner: "kim" });
    const { content } = await result(second, taskId);
    assert.equal(content[0].text, "worked 2000 ms");
  },

  async "a task whose session ends at the server"() {
    const client = await connect();
    const name = label();
    const { taskId } = await create(client, "slow", { ms: 30000, label: name });
    await called(name);
    await client.transport.terminateSession();
    const other = await connect();
    await until(other, taskId, "failed");
    assert.equal((await failure(other, taskId)).code, -31014);
  },

  async "a session that the server does not know"() {
    const url = defaults.base + defaults.path;
    const headers = { "Mcp-Session-Id": "nothing", "X-Owner": "ann" };
    const { result: made } = await answer(legacy(url, { method: "tools/call",
      params: { name: "echo", arguments: {}, task: {} } }, { headers }));
    const client = await connect();
    const { code } = await failure(client, made.task.taskId);
    assert.equal(code, -32001);             // as the server said
  },

  async "another client's tasks do not exist"() {
    const bob = await connect({ owner: "bob" });
    const eve = await connect({ owner: "eve" });
    const { taskId } = await create(bob, "slow", { ms: 30000 });
    await assert.rejects(eve.experimental.tasks.getTask(taskId),
                         refused(-32602));
    await assert.rejects(eve.experimental.tasks.cancelTask(taskId),
                         refused(-32602));
    await bob.experimental.tasks.cancelTask(taskId);
  },

  async "many at a time, in one session"() {
    const { client, asked } = await answering({ name: "Ann" });
    const names = Array.from({ length: 20 }, label);
    const done = await Promise.all(names.map(async (name, i) => {
      const { taskId } = await create(client, i % 4 ? "slow" : "ask",
                                      { ms: 500, label: name });
      return result(client, taskId);
    }));
    assert.equal(asked.length, 5);
    assert.ok(done.every(({ isError }) => !isError));
    assert.deepEqual(done.map(({ _meta }) => _meta.label),
                     names.map((name, i) => i % 4 ? name : undefined));
  },

  async "the same id of a request, again"() {
    const client = await connect();
    const headers = { "Mcp-Session-Id": client.transport.sessionId,
                      "MCP-Protocol-Version": "2025-11-25", "X-Owner": "ann",
                      "Content-Type": "application/json",
                      Accept: "application/json, text/event-stream" };
    const made = await Promise.all(["one", "two"].map((text) =>
      answer(fetch(defaults.base + defaults.path, { method: "POST", headers,
        body: JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call",
          params: { name: "slow", arguments: { ms: 700, label: text },
                    task: {} } }) }))));
    for (const [i, { result: { task } }] of made.entries())
      assert.equal((await result(client, task.taskId))._meta.label,
                   ["one", "two"][i]);
  },

  async "a call that takes too long"() {
    const client = await connect({ path: "/hasty-legacy" });
    const name = label();
    const { taskId } = await create(client, "slow", { ms: 30000, label: name });
    await until(client, taskId, "failed");
    await abandoned(name);
  },

  async "a server that answers with JSON"() {
    const client = await connect({ path: "/legacy/json" });
    const { taskId } = await create(client, "slow", { ms: 500 });
    const { content } = await result(client, taskId);
    assert.equal(content[0].text, "worked 500 ms");
    const name = label();
    const long = await create(client, "slow", { ms: 30000, label: name });
    await called(name);
    await client.experimental.tasks.cancelTask(long.taskId);
    await abandoned(name);
  },

  async "a server whose streams have ids"() {
    const { client } = await answering({ name: "Ann" },
                                       { path: "/legacy/resumable" });
    const heard = await stream(client, "slow", { ms: 1200 });
    assert.equal(heard.at(-1).type, "result");
    const { taskId } = await create(client, "ask", { label: label() });
    assert.match((await result(client, taskId)).content[0].text, /Ann/);
  },

  async "a server that closes a stream, to be resumed"() {
    const client = await connect({ path: "/legacy/resumable" });
    const { taskId } = await create(client, "polled", { ms: 800 });
    const end = await result(client, taskId);
    assert.equal(end.content[0].text, "it went on");
  },

  async "a server that is not there"() {
    const { result: { task } } = await answer(legacy(`${defaults.base}/gone`,
      { method: "tools/call", params: { name: "x", task: {} } },
      { headers: { "X-Owner": "ann" } }));
    const client = await connect();
    const { code, data } = await failure(client, task.taskId);
    assert.equal(code, -31014);
    assert.equal(data.reason, "upstream_unreachable");
    await assert.rejects(connect({ path: "/gone" }));
  },

  async "a client of 2026-07-28 comes down to 2025-11-25"() {
    for (const path of ["/legacy/mcp", "/untold/legacy"]) {
      const client = await later.connect({ path });
      assert.equal(client.getProtocolEra(), "legacy");
      const { content } = await client.callTool(
        { name: "echo", arguments: { text: "x" } });
      assert.equal(content[0].text, "x");
    }
  },

  async "a client that speaks nothing but 2026-07-28 is refused"() {
    for (const path of ["/legacy/mcp", "/untold/legacy"])
      await assert.rejects(later.connect({ path,
                                           mode: { pin: "2026-07-28" } }));
  },
};


async function all(tests, where) {
  for (const [name, body] of Object.entries(tests)) {
    await report.test(`${name} (${where})`, body);
    await close();
    await later.close();
  }
}


export async function run(gateway) {
  ({ plain, seen } = gateway);

  report.heading("servers of 2025-11-25 without the gateway");
  defaults.base = plain;
  await all(plainly, "SDK 1.32, without");

  report.heading("servers of 2025-11-25 behind the gateway");
  defaults.base = gateway.url;
  await all(plainly, "SDK 1.32, plainly");
  await all(asTasks, "SDK 1.32, tasks");
}
