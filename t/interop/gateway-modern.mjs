// The gateway in front of servers of 2026-07-28 that know nothing of tasks,
// with the SDK of that era and ext-tasks as clients; and servers of both eras.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { TaskStatusNotificationV2Schema }
  from "@modelcontextprotocol/ext-tasks/core/v2";
import { create, legacyClients, related, result } from "./clients-legacy.mjs";
import { answering, extension, modernClients, refused, settled }
  from "./clients-modern.mjs";
import { answer, messages, modern } from "./wire.mjs";
import * as report from "./report.mjs";

const defaults = { path: "/modern/mcp", owner: "ann" };
const { connect, session, close } = modernClients(defaults);
const earlier = legacyClients(defaults);

let plain, seen;


let calls = 0;
const label = () => `modern-${++calls}`;

// what the server was asked with this label, as soon as it was
async function called(name, times = 1) {
  for (;;) {
    const found = (await seen("modern")).requests.filter(({ body }) =>
      body?.method === "tools/call" && body.params.arguments?.label === name);
    if (found.length >= times) return found;
    await sleep(50);
  }
}

async function abandoned(name) {
  while (!(await seen("modern")).cancelled.some((it) => it.label === name))
    await sleep(50);
}

async function until(task, status) {
  while ((await task.snapshot()).status !== status) await sleep(100);
}

const say = (method, params, base = defaults.base, path = defaults.path) =>
  answer(modern(base + path, { method, params },
                { headers: { "X-Owner": "ann" } }));


const plainly = {

  async "a call"() {
    const client = await connect();
    assert.equal(client.getProtocolEra(), "modern");
    assert.equal(client.getServerVersion().name, "upstream-modern");
    const { content } = await client.callTool(
      { name: "echo", arguments: { text: "h\u00e9" } });
    assert.equal(content[0].text, "h\u00e9");
  },

  async "progress arrives while it works"() {
    for (const path of ["/modern/mcp", "/modern/sse"]) {
      const client = await connect({ path });
      const told = [];
      const { content } = await client.callTool(
        { name: "slow", arguments: { ms: 800 } },
        { onprogress: ({ progress }) => told.push([progress, Date.now()]) });
      const end = Date.now();
      assert.equal(content[0].text, "worked 800 ms");
      assert.deepEqual(told.map(([progress]) => progress), [1, 2, 3, 4]);
      assert.ok(end - told[0][1] > 300, "all came at once");
    }
  },

  async "servers that answer in other ways"() {
    for (const path of ["/modern/json", "/modern/crlf", "/modern/gzip"]) {
      const client = await connect({ path });
      const { tools } = await client.listTools();
      assert.ok(tools.length > 5);
      const { content } = await client.callTool(
        { name: "echo", arguments: { text: "x" } });
      assert.equal(content[0].text, "x");
    }
  },

  async "questions"() {
    const client = await connect({ capabilities: { elicitation: {},
                                                   sampling: {} } });
    client.setRequestHandler("elicitation/create", async () =>
      ({ action: "accept", content: { name: "Ann" } }));
    client.setRequestHandler("sampling/createMessage", async () =>
      ({ role: "assistant", model: "none",
         content: { type: "text", text: "forty-two" } }));
    const { content } = await client.callTool(
      { name: "ask", arguments: { label: label(), twice: true } });
    assert.equal(JSON.parse(content[0].text).length, 2);
    const said = await client.callTool({ name: "sample", arguments: {} });
    assert.equal(said.content[0].text, "The model says forty-two");
  },

  async "errors"() {
    const client = await connect();
    const failed = await client.callTool({ name: "fail", arguments: {} });
    assert.equal(failed.isError, true);
    await assert.rejects(client.callTool({ name: "throws" }), refused(-32603));
    await assert.rejects(client.callTool({ name: "nothing" }), refused(-32602));
    await assert.rejects(client.callTool({ name: "ask", arguments: {} }),
                         refused(-32021));
  },

  async "giving up a call"() {
    const client = await connect();
    const stop = new AbortController();
    const name = label();
    const waiting = client.callTool(
      { name: "slow", arguments: { ms: 30000, label: name } },
      { signal: stop.signal });
    waiting.catch(() => {});
    await called(name);
    stop.abort();
    await assert.rejects(waiting);
    await abandoned(name);
  },

  async "an argument that is repeated in a header"() {
    const client = await connect();
    await client.listTools();
    const { content } = await client.callTool(
      { name: "routed", arguments: { region: "eu" } });
    assert.equal(content[0].text, "routed to eu");
  },

  async "a subscription that is not about tasks"() {
    const stop = new AbortController();
    const response = await modern(defaults.base + defaults.path,
      { method: "subscriptions/listen",
        params: { notifications: { toolsListChanged: true } } },
      { signal: stop.signal });
    for await (const { method, params } of messages(response)) {
      assert.equal(method, "notifications/subscriptions/acknowledged");
      assert.deepEqual(params.notifications, { toolsListChanged: true });
      break;
    }
    stop.abort();
  },

  async "methods and headers that the server does not like"() {
    const url = defaults.base + defaults.path;
    const unknown = await modern(url, { method: "nothing" });
    assert.equal(unknown.status, 404);
    assert.equal((await answer(unknown)).error.code, -32601);
    const wrong = await modern(url,
      { method: "tools/call", params: { name: "never" } },
      { headers: { "Mcp-Name": "other" } });
    assert.equal(wrong.status, 400);
    assert.equal((await answer(wrong)).error.code, -32020);
  },

  async "a server of both eras"() {
    const path = "/modern/both";
    const client = await connect({ path });
    assert.equal(client.getProtocolEra(), "modern");
    const older = await earlier.connect({ path });
    for (const it of [client, older]) {
      const { content } = await it.callTool(
        { name: "echo", arguments: { text: "x" } });
      assert.equal(content[0].text, "x");
    }
  },
};


const asTasks = {

  async "discover: the server's own answer, and the extension"() {
    const client = await connect();
    const { tools, logging, extensions } = client.getServerCapabilities();
    assert.ok(tools);
    assert.ok(logging);
    assert.deepEqual(extensions[extension], {});
    const all = async (base) => {
      const { result: { capabilities: { extensions, ...rest }, ...other } } =
        await say("server/discover", {}, base);
      return { ...other, capabilities: rest };
    };
    assert.deepEqual(await all(defaults.base), await all(plain));
  },

  async "tools are what they are"() {
    assert.deepEqual((await say("tools/list")).result,
                     (await say("tools/list", {}, plain)).result);
  },

  async "a call becomes a task"() {
    const s = await session();
    const execution = await s.callTool("slow", { ms: 1500 });
    assert.equal(execution.kind, "task");
    const { outcome, seen } = await settled(execution);
    assert.equal(outcome.status, "completed");
    assert.equal(outcome.result.content[0].text, "worked 1500 ms");
    assert.equal(seen[0], "working");
  },

  async "the server hears nothing of tasks"() {
    const s = await session();
    const name = label();
    await settled(await s.callTool("slow", { ms: 1, label: name }));
    const [{ body, headers }] = await called(name);
    const declared =
      body.params._meta["io.modelcontextprotocol/clientCapabilities"];
    assert.equal(declared.extensions?.[extension], undefined);
    assert.ok(declared.elicitation);
    assert.equal(headers["mcp-method"], "tools/call");
    assert.equal(headers["mcp-name"], "slow");
    assert.equal(headers.origin, undefined);
  },

  async "results are what the server said"() {
    for (const [name, args] of [
      ["echo", { text: "a\u0000b \ud83d\ude00 \"" }],
      ["slow", { ms: 1, label: "x" }], ["structured", { city: "Oslo" }],
      ["large", { kilobytes: 64 }], ["fail", {}], ["slow", { ms: "x" }],
    ]) {
      const call = { name, arguments: args };
      const { result: made } = await say("tools/call", call);
      assert.equal(made.resultType, "task");
      let task;
      while ((task = (await say("tasks/get", made)).result).status
             === "working") await sleep(50);
      assert.equal(task.status, "completed");
      const { result } = await say("tools/call", { ...call, _meta: {
        "io.modelcontextprotocol/clientCapabilities": {} } }, plain);
      assert.deepEqual(task.result, result);
    }
  },

  async "errors are what the server said"() {
    for (const name of ["throws", "nothing"]) {
      const { result: made } = await say("tools/call", { name });
      let task;
      while ((task = (await say("tasks/get", made)).result).status
             === "working") await sleep(50);
      assert.equal(task.status, "failed");
      const { error } = await say("tools/call", { name }, plain);
      assert.deepEqual(task.error, error);
    }
  },

  async "a subscription to a task, with what it is at"() {
    const { result: { taskId } } = await say("tools/call",
      { name: "slow", arguments: { ms: 1500 } });
    const response = await modern(defaults.base + defaults.path,
      { method: "subscriptions/listen",
        params: { notifications: { taskIds: [taskId] } } },
      { headers: { "X-Owner": "ann" } });
    const tasks = [];
    for await (const message of messages(response)) {
      if (message.method !== "notifications/tasks") continue;
      TaskStatusNotificationV2Schema.parse(message);
      tasks.push(message.params);
      if (message.params.status === "completed") break;
    }
    assert.ok(tasks.some(({ statusMessage }) =>
      /^step/.test(statusMessage ?? "")));
    assert.equal(tasks.at(-1).result.content[0].text, "worked 1500 ms");
  },

  async "a call that is answered in time, and one that is not"() {
    const s = await session();
    const quick = await s.callTool("later", { ms: 50 });
    assert.equal(quick.kind, "immediate");
    const { outcome } = await settled(quick);
    assert.equal(outcome.result.content[0].text, "worked 50 ms");
    const begin = Date.now();
    const late = await s.callTool("later", { ms: 2500 });
    assert.equal(late.kind, "task");
    assert.ok(Date.now() - begin < 2000);
    const end = await settled(late);
    assert.equal(end.outcome.result.content[0].text, "worked 2500 ms");
  },

  async "giving up a call that is not yet a task"() {
    const stop = new AbortController();
    const name = label();
    const waiting = modern(defaults.base + defaults.path,
      { method: "tools/call",
        params: { name: "later", arguments: { ms: 30000, label: name } } },
      { signal: stop.signal, headers: { "X-Owner": "ann" } });
    waiting.catch(() => {});
    await called(name);
    stop.abort();
    await abandoned(name);
  },

  async "input"() {
    const { asked, onInputRequest } = answering();
    const s = await session({ onInputRequest });
    const name = label();
    const execution = await s.callTool("ask", { label: name });
    const { outcome } = await settled(execution);
    assert.match(outcome.result.content[0].text, /"name":"Ann"/);
    assert.equal(asked.length, 1);
    assert.equal(asked[0].taskId, execution.handle.taskId);
    assert.equal(asked[0].params.message, `What is your name, for ${name}?`);
    const rounds = await called(name, 2);
    assert.equal(rounds.length, 2);
    const { inputResponses, requestState } = rounds[1].body.params;
    assert.equal(inputResponses.name.action, "accept");
    assert.ok(requestState);
    assert.equal(rounds[1].headers["mcp-name"], "ask");
  },

  async "input, twice, with the same key"() {
    const { asked, onInputRequest } = answering();
    const s = await session({ onInputRequest });
    const name = label();
    const { outcome } = await settled(
      await s.callTool("ask", { label: name, twice: true }));
    assert.equal(JSON.parse(outcome.result.content[0].text).length, 2);
    assert.equal(asked.length, 2);
    assert.notEqual(asked[0].params.message, asked[1].params.message);
    for (const { body } of (await called(name, 3)).slice(1))
      assert.deepEqual(Object.keys(body.params.inputResponses), ["name"]);
  },

  async "sampling"() {
    const { asked, onInputRequest } = answering();
    const s = await session({ onInputRequest });
    const { outcome } = await settled(await s.callTool("sample"));
    assert.equal(outcome.result.content[0].text, "The model says forty-two");
    assert.equal(asked[0].kind, "sampling");
  },

  async "answers by hand"() {
    const s = await session();
    const execution = await s.callTool("ask", { label: label() });
    const { taskId } = execution.handle;
    await execution.detach();
    const task = s.task(taskId);
    await until(task, "input_required");
    const { result: { inputRequests } } = await say("tasks/get", { taskId });
    assert.deepEqual(Object.keys(inputRequests), ["name"]);
    await task.update({ other: { action: "decline" } });
    assert.equal((await task.snapshot()).status, "input_required");
    await task.update({ name: { action: "decline" } });
    const outcome = await task.result();
    assert.match(outcome.result.content[0].text, /"decline"/);
  },

  async "a client that cannot be asked"() {
    const { result: made } = await say("tools/call", { name: "ask",
      arguments: { label: label() },
      _meta: { "io.modelcontextprotocol/clientCapabilities": {
        extensions: { "io.modelcontextprotocol/tasks": {} } } } });
    let task;
    while ((task = (await say("tasks/get", made)).result).status
           === "working") await sleep(50);
    assert.equal(task.status, "failed");
    assert.equal(task.error.code, -32021);  // as the server said
  },

  async "the server's call is closed when a task is cancelled"() {
    for (const path of ["/modern/mcp", "/modern/sse", "/modern/json"]) {
      const s = await session({ path });
      const name = label();
      const execution = await s.callTool("slow", { ms: 30000, label: name });
      await called(name);
      await execution.cancel();
      const { outcome } = await settled(execution);
      assert.equal(outcome.status, "cancelled");
      await abandoned(name);
    }
  },

  async "a task is cancelled while it asks"() {
    const s = await session();
    const execution = await s.callTool("ask", { label: label() });
    const { taskId } = execution.handle;
    await execution.detach();
    const task = s.task(taskId);
    await until(task, "input_required");
    await task.cancel();
    await until(task, "cancelled");
  },

  async "a call that takes too long"() {
    const s = await session({ path: "/hasty" });
    const name = label();
    const { outcome } = await settled(
      await s.callTool("slow", { ms: 30000, label: name }));
    assert.equal(outcome.status, "failed");
    await abandoned(name);
  },

  async "tools that must be tasks, and that cannot be"() {
    const client = await connect();
    await assert.rejects(client.callTool({ name: "must", arguments: {} }),
                         refused(-32021));
    const s = await session();
    const must = await s.callTool("must", { text: "x" });
    assert.equal(must.kind, "task");
    const { outcome } = await settled(must);
    assert.equal(outcome.result.content[0].text, "x");
    for (const name of ["never", "never_too"]) {
      const execution = await s.callTool(name, { text: "y" });
      assert.equal(execution.kind, "immediate");
    }
  },

  async "a task outlives its client"() {
    const first = await session({ owner: "kim" });
    const execution = await first.callTool("slow", { ms: 2000 });
    let reference;
    await execution.handoff((it) => { reference = it; });
    await sleep(100);                   // or close() cancels it all the same
    await first.close();
    const second = await session({ owner: "kim" });
    const { outcome } = await settled(await second.resumeTask(reference));
    assert.equal(outcome.result.content[0].text, "worked 2000 ms");
  },

  async "another client's task does not exist"() {
    const ann = await session({ owner: "ann" });
    const eve = await session({ owner: "eve" });
    const execution = await ann.callTool("slow", { ms: 30000 });
    const { taskId } = execution.handle;
    await assert.rejects(eve.task(taskId).snapshot(), refused(-32602));
    await assert.rejects(eve.task(taskId).cancel(), refused(-32602));
    await execution.cancel();
  },

  async "an argument that is repeated in a header"() {
    const region = "eu";
    const { result: made } = await answer(modern(
      defaults.base + defaults.path,
      { method: "tools/call", params: { name: "routed",
                                        arguments: { region } } },
      { headers: { "X-Owner": "ann", "Mcp-Param-Region": region } }));
    let task;
    while ((task = (await say("tasks/get", made)).result).status
           === "working") await sleep(50);
    assert.equal(task.result.content[0].text, "routed to eu");
  },

  async "servers that answer in other ways"() {
    for (const path of ["/modern/sse", "/modern/json", "/modern/crlf",
                        "/modern/gzip"]) {
      const { onInputRequest } = answering();
      const s = await session({ path, onInputRequest });
      const slow = await settled(await s.callTool("slow", { ms: 500 }));
      assert.equal(slow.outcome.result.content[0].text, "worked 500 ms");
      const ask = await settled(await s.callTool("ask", { label: label() }));
      assert.match(ask.outcome.result.content[0].text, /Ann/);
    }
  },

  async "many at a time"() {
    const s = await session();
    const names = Array.from({ length: 20 }, label);
    const done = await Promise.all(names.map(async (name) =>
      settled(await s.callTool("slow", { ms: 500, label: name }))));
    assert.deepEqual(done.map(({ outcome }) => outcome.result._meta.label),
                     names);
  },

  async "not more at a time than allowed, and none is lost"() {
    const s = await session({ path: "/few" });
    const begin = Date.now();
    const done = await Promise.all(Array.from({ length: 6 }, async () =>
      settled(await s.callTool("slow", { ms: 700 }))));
    assert.ok(done.every(({ outcome }) => outcome.status === "completed"));
    assert.ok(Date.now() - begin > 2000);
  },

  async "a server that is not there"() {
    const { result: made } = await say("tools/call", { name: "x" },
                                       defaults.base, "/gone");
    let task;
    while ((task = (await say("tasks/get", made)).result).status
           === "working") await sleep(50);
    assert.equal(task.status, "failed");
    assert.equal(task.error.code, -31014);
    assert.equal(task.error.data.reason, "upstream_unreachable");
  },

  async "a client of 2025-11-25 is refused"() {
    for (const path of ["/modern/mcp", "/untold/modern"])
      await assert.rejects(earlier.connect({ path }),
                           /Unsupported protocol version|-32022/);
  },

  async "a server whose era the gateway is not told"() {
    const { onInputRequest } = answering();
    const s = await session({ path: "/untold/modern", onInputRequest });
    const { outcome } = await settled(await s.callTool("ask",
                                                       { label: label() }));
    assert.match(outcome.result.content[0].text, /Ann/);
  },

  async "a server of both eras"() {
    const path = "/modern/both";
    const { onInputRequest } = answering();
    const s = await session({ path, onInputRequest });
    const { outcome } = await settled(await s.callTool("ask",
                                                       { label: label() }));
    assert.match(outcome.result.content[0].text, /Ann/);

    // without a session, it cannot be asked but called
    const older = await earlier.connect({ path });
    assert.ok(older.getServerCapabilities().tasks.requests.tools.call);
    const name = label();
    const { taskId } = await create(older, "slow", { ms: 700, label: name });
    const done = await result(older, taskId);
    assert.equal(done._meta.label, name);
    assert.equal(done._meta[related].taskId, taskId);

    // here it is the closed connection that the server understands
    const long = label();
    const made = await create(older, "slow", { ms: 30000, label: long });
    await called(long);
    await older.experimental.tasks.cancelTask(made.taskId);
    await abandoned(long);
  },

  async "a task of one era is seen in the other"() {
    const path = "/modern/both";
    const older = await earlier.connect({ path });
    const { taskId } = await create(older, "slow", { ms: 300 });
    let task;
    while ((task = (await say("tasks/get", { taskId }, defaults.base, path))
              .result).status === "working") await sleep(50);
    assert.equal(task.result.content[0].text, "worked 300 ms");
    assert.equal(task.result.resultType, "complete");
  },
};


async function all(tests, where) {
  for (const [name, body] of Object.entries(tests)) {
    await report.test(`${name} (${where})`, body);
    await close();
    await earlier.close();
  }
}


export async function run(gateway) {
  ({ plain, seen } = gateway);

  report.heading("servers of 2026-07-28 without the gateway");
  defaults.base = plain;
  await all(plainly, "SDK 2.4, without");

  report.heading("servers of 2026-07-28 behind the gateway");
  defaults.base = gateway.url;
  await all(plainly, "SDK 2.4, plainly");
  await all(asTasks, "SDK 2.4, tasks");
}
