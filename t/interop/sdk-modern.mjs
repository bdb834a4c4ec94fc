// The TypeScript SDK of the 2026-07-28 era, and the client of the tasks
// extension on top of it.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";
import { answering, extension, modernClients, refused, settled }
  from "./clients-modern.mjs";
import * as report from "./report.mjs";

const defaults = { path: "/mcp" };
const { open, connect, session, close } =
  modernClients(defaults, { path: "/named", owner: "ann" });


const tests = {

  async "auto finds the modern era"() {
    const client = await connect();
    assert.equal(client.getProtocolEra(), "modern");
    assert.deepEqual(client.getServerCapabilities().extensions[extension], {});
    assert.ok(client.getServerVersion()?.name);
  },

  async "pinned to 2026-07-28"() {
    const client = await connect({ mode: { pin: "2026-07-28" } });
    assert.equal(client.getProtocolEra(), "modern");
  },

  async "the same client in the legacy era"() {
    const client = await connect({ mode: "legacy" });
    assert.equal(client.getProtocolEra(), "legacy");
    const { content } = await client.callTool(
      { name: "greet", arguments: { name: "Ann" } });
    assert.equal(content[0].text, "Hello, Ann!");
    await client.ping();
  },

  async "tools"() {
    const client = await connect();
    const { tools } = await client.listTools();
    assert.ok(tools.some((t) => t.name === "slow_compute"));
  },

  async "a client that knows nothing of tasks"() {
    const client = await connect();
    const seen = [];
    const counted = await client.callTool(
      { name: "count", arguments: { to: 3 } },
      { onprogress: (p) => seen.push(p.progress) });
    assert.equal(counted.content[0].text, "counted to 3");
    assert.deepEqual(seen, [1, 2, 3]);
    const failed = await client.callTool({ name: "test_error_handling" });
    assert.equal(failed.isError, true);
    await assert.rejects(client.callTool({ name: "protocol_error_job" }),
                         refused(-32603));
    await assert.rejects(client.callTool({ name: "failing_job" }),
                         refused(-32021));
    await assert.rejects(client.callTool({ name: "nothing" }),
                         refused(-32602));
  },

  async "structured content"() {
    const client = await connect();
    await client.listTools();
    const { structuredContent } = await client.callTool(
      { name: "structured", arguments: { city: "Oslo" } });
    assert.deepEqual(structuredContent, { city: "Oslo", degrees: 21.5 });
  },

  async "an argument that is repeated in a header"() {
    const client = await connect();
    await client.listTools();
    for (const region of ["eu", "Zürich", " x "]) {
      const { content } = await client.callTool(
        { name: "routed", arguments: { region } });
      assert.equal(content[0].text, `routed to ${region}`);
    }
  },

  async "giving up cancels a plain call"() {
    const client = await connect();
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 300);
    await assert.rejects(client.callTool(
      { name: "slow_compute", arguments: { seconds: 30 } },
      { signal: stop.signal }));
  },

  async "ext-tasks: a call becomes a task"() {
    const s = await session();
    assert.equal(s.capabilities.execution, true);
    const execution = await s.callTool("count", { to: 3, delay: 0.3 });
    assert.equal(execution.kind, "task");
    const { outcome, seen } = await settled(execution);
    assert.equal(resultFromTaskOutcome(outcome).content[0].text,
                 "counted to 3");
    assert.equal(seen[0], "working");
  },

  async "ext-tasks: a call that is answered at once"() {
    const s = await session();
    const execution = await s.callTool("greet", { name: "Ann" });
    assert.equal(execution.kind, "immediate");
    const { outcome } = await settled(execution);
    assert.equal(outcome.result.content[0].text, "Hello, Ann!");
  },

  async "ext-tasks: input"() {
    const { asked, onInputRequest } = answering();
    const s = await session({ onInputRequest });
    const execution = await s.callTool("confirm_delete",
                                       { filename: "a.txt" });
    const { outcome } = await settled(execution);
    assert.match(outcome.result.content[0].text, /"confirm":true/);
    assert.equal(asked.length, 1);
    assert.equal(asked[0].taskId, execution.handle.taskId);
    assert.match(asked[0].params.message, /a\.txt/);
  },

  async "ext-tasks: several questions at a time"() {
    const { asked, onInputRequest } = answering();
    const s = await session({ onInputRequest });
    const { outcome } = await settled(await s.callTool("multi_input"));
    assert.match(outcome.result.content[0].text, /"first".*"second"/);
    assert.equal(asked.length, 2);
  },

  async "ext-tasks: sampling"() {
    const { asked, onInputRequest } = answering();
    const s = await session({ onInputRequest });
    const { outcome } = await settled(await s.callTool("ask_model"));
    assert.match(outcome.result.content[0].text, /forty-two/);
    assert.equal(asked[0].kind, "sampling");
  },

  async "ext-tasks: answers by hand, one after the other"() {
    const s = await session();
    const execution = await s.callTool("multi_input");
    const { taskId } = execution.handle;
    await execution.detach();
    const task = s.task(taskId);
    while ((await task.snapshot()).status !== "input_required")
      await sleep(100);
    await task.update({ first: { action: "accept", content: { name: "A" } } });
    assert.equal((await task.snapshot()).status, "input_required");
    await task.update({ second: { action: "decline" } });
    const outcome = await task.result();
    assert.match(outcome.result.content[0].text, /"decline"/);
  },

  async "ext-tasks: a tool's own error"() {
    const s = await session();
    const { outcome } = await settled(await s.callTool("failing_job"));
    assert.equal(outcome.status, "completed");
    assert.equal(outcome.result.isError, true);
  },

  async "ext-tasks: a protocol error"() {
    const s = await session();
    const { outcome } = await settled(await s.callTool("protocol_error_job"));
    assert.equal(outcome.status, "failed");
    assert.equal(outcome.error.code, -32603);
  },

  async "ext-tasks: cancel"() {
    const s = await session();
    const execution = await s.callTool("slow_compute", { seconds: 30 });
    await execution.cancel();
    const { outcome } = await settled(execution);
    assert.equal(outcome.status, "cancelled");
  },

  async "ext-tasks: expiry"() {
    const s = await session();
    const execution = await s.callTool("brief");
    const { outcome } = await settled(execution);
    assert.equal(outcome.status, "completed");
    await sleep(2500);
    await assert.rejects(s.task(execution.handle.taskId).snapshot(),
                         refused(-32602));
  },

  async "ext-tasks: a task outlives its client"() {
    const first = await session({ owner: "kim" });
    const execution = await first.callTool("slow_compute", { seconds: 2 });
    let reference;
    await execution.handoff((it) => { reference = it; });
    await sleep(100);                   // or close() cancels it all the same
    await first.close();
    const second = await session({ owner: "kim" });
    const { outcome } = await settled(await second.resumeTask(reference));
    assert.match(outcome.result.content[0].text, /computed/);
  },

  async "ext-tasks: another client's task does not exist"() {
    const ann = await session({ owner: "ann" });
    const eve = await session({ owner: "eve" });
    const execution = await ann.callTool("slow_compute", { seconds: 30 });
    const { taskId } = execution.handle;
    await assert.rejects(eve.task(taskId).snapshot(), refused(-32602));
    await assert.rejects(eve.task(taskId).cancel(), refused(-32602));
    await execution.cancel();
  },

  async "ext-tasks: the same in the legacy era"() {
    const { asked, onInputRequest } = answering();
    const s = await session({ mode: "legacy", owner: "lee", onInputRequest });
    const { tools } = await open[0].listTools();
    const declaration = (name) => {
      const { execution, ...tool } = tools.find((t) => t.name === name);
      return { ...tool, taskSupport: execution?.taskSupport };
    };
    const execution = await s.callTool("confirm_delete", { filename: "b" },
      { declaration: declaration("confirm_delete"),
        task: { preference: "require" } });
    assert.equal(execution.kind, "task");
    const { outcome } = await settled(execution);
    assert.match(outcome.result.content[0].text, /"confirm":true/);
    assert.equal(asked.length, 1);
    assert.ok((await s.listTasks()).tasks.length > 0);
  },

  // by InputRequiredResult, which the SDK answers by itself
  async "input of a plain call"() {
    const client = await connect({ capabilities: { elicitation: {} } });
    client.setRequestHandler("elicitation/create", async () =>
      ({ action: "accept", content: { confirm: true } }));
    const { content } = await client.callTool(
      { name: "confirm_delete", arguments: { filename: "a.txt" } });
    assert.match(content[0].text, /"confirm":true/);
  },
};


export async function run({ url }) {
  report.heading("TypeScript SDK 2.4 and ext-tasks 0.2, 2026-07-28");
  defaults.base = url;

  for (const [name, body] of Object.entries(tests)) {
    await report.test(`${name} (SDK 2.4)`, body);
    await close();
  }
}
