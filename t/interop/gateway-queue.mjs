// The gateway in front of another nginx with the queue, also for tools that the
// queue runs only as tasks.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { create, legacyClients, related, result, stream, until }
  from "./clients-legacy.mjs";
import { answering, modernClients, settled } from "./clients-modern.mjs";
import * as report from "./report.mjs";

const text = ({ content }) => content.map((one) => one.text).join("");

let queue;


// the tasks of the queue, as its own clients see them
async function theirs() {
  const clients = legacyClients({ base: queue.url, path: "/owned",
                                  owner: "ann" });
  const client = await clients.connect();
  const { tasks } = await client.experimental.tasks.listTasks();
  await clients.close();
  return tasks;
}


const legacy = {

  async "which tools require a task"({ client }) {
    const { tools } = await client.listTools();
    const of = (name) => tools.find((one) => one.name === name).execution;
    assert.equal(of("failing_job").taskSupport, "required");
    assert.equal(of("count").taskSupport, "optional");
  },

  async "a plain call"({ client }) {
    assert.equal(text(await client.callTool({ name: "greet",
      arguments: { name: "Ann" } })), "Hello, Ann!");
  },

  async "a task"({ client }) {
    const told = await stream(client, "count", { to: 3, delay: 0.5 });
    assert.equal(told[0].type, "taskCreated");
    assert.equal(text(told.at(-1).result), "counted to 3");
  },

  async "a tool that requires a task, and asks"({ client, asked }) {
    const { taskId } = await create(client, "test_tool_with_task", {});
    const { _meta, ...rest } = await result(client, taskId);
    assert.equal(_meta[related].taskId, taskId);
    assert.equal(asked.length, 1);
    assert.equal(text(rest), "Hello, Ann!");
  },

  async "a tool that requires a task, and fails"({ client }) {
    const { taskId } = await create(client, "failing_job", {});
    const said = await result(client, taskId);
    assert.equal(said.isError, true);
    assert.equal(text(said), "this job always fails");
    await until(client, taskId, "failed");
  },

  async "a tool that requires a task, for some seconds"({ client }) {
    const told = await stream(client, "must_count", { to: 3, delay: 1 });
    assert.equal(text(told.at(-1).result), "counted to 3");
  },

  // the end of the gateway's task is the end of the queue's
  async "a tool that requires a task, cancelled"({ client }) {
    const before = (await theirs()).map(({ taskId }) => taskId);
    const { taskId } = await create(client, "must_count", { to: 1000 });
    let task;
    while (!(task = (await theirs()).find((one) =>
      !before.includes(one.taskId)))) await sleep(100);

    const { status } = await client.experimental.tasks.cancelTask(taskId);
    assert.equal(status, "cancelled");
    while ((await theirs()).find((one) => one.taskId === task.taskId).status
           !== "cancelled") await sleep(100);
  },
};


const modern = {

  async "a task"({ session }) {
    const { outcome } = await settled(await session.callTool("count",
      { to: 3, delay: 0.5 }));
    assert.equal(text(outcome.result), "counted to 3");
  },

  async "a tool that requires a task, and asks"({ session, asked }) {
    const { outcome } = await settled(
      await session.callTool("test_tool_with_task", {}));
    assert.equal(outcome.status, "completed");
    assert.equal(asked.length, 1);
    assert.equal(text(outcome.result), "Hello, Ann!");
  },

  async "a tool that requires a task, with its messages"({ session }) {
    const messages = new Set();
    const { outcome } = await (await session.callTool("must_count",
      { to: 3, delay: 1 })).settle({ onEvent: ({ task }) => {
        if (task?.statusMessage) messages.add(task.statusMessage);
      } });
    assert.equal(text(outcome.result), "counted to 3");
    assert.ok([...messages].some((one) => /^at \d$/.test(one)));
  },

  async "a tool that requires a task, and fails"({ session }) {
    const { outcome } = await settled(await session.callTool("failing_job",
                                                             {}));
    assert.equal(outcome.result.isError, true);
    assert.equal(text(outcome.result), "this job always fails");
  },
};


export async function run(gateway) {
  ({ queue } = gateway);
  const defaults = { base: gateway.url, path: "/queue", owner: "ann" };

  await report.together("nginx with the queue, behind the gateway", [
    async (line) => {
      const clients = legacyClients(defaults);
      const it = await clients.answering({ name: "Ann" });
      for (const [what, body] of Object.entries(legacy))
        await line(`${what} (queue, legacy)`, () => body(it));
      await clients.close();
    },

    // with another owner, so that the other finds its own tasks
    async (line) => {
      const { onInputRequest, asked } = answering();
      const clients = modernClients({ ...defaults, owner: "bob" },
                                    { onInputRequest });
      const session = await clients.session({ mode: { pin: "2026-07-28" } });
      for (const [what, body] of Object.entries(modern))
        await line(`${what} (queue, modern)`, () => body({ session, asked }));
      await clients.close();
    },
  ]);
}
