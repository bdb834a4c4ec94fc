// Notifications of tasks over subscriptions/listen, which the conformance suite
// does not test yet: with plain requests, and the extension's schemas.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { GetTaskResultV2Schema, TaskStatusNotificationV2Schema,
         TaskSubscriptionAcknowledgedNotificationsV2Schema }
  from "@modelcontextprotocol/ext-tasks/core/v2";
import { answer, meta, messages, modern } from "./wire.mjs";
import * as report from "./report.mjs";

const capability = "io.modelcontextprotocol/clientCapabilities";
const subscription = "io.modelcontextprotocol/subscriptionId";

let url;


async function call(method, params) {
  const { result, error } = await answer(modern(url, { method, params }));
  if (error) throw Object.assign(new Error(error.message), error);
  return result;
}

const create = async (name, args = {}) =>
  (await call("tools/call", { name, arguments: args })).taskId;


// A subscription: what was acknowledged, and what follows until "enough".
async function listen(taskIds, enough = () => false) {
  const stop = new AbortController();
  const response = await modern(url,
    { method: "subscriptions/listen", params: { notifications: { taskIds } } },
    { signal: stop.signal });
  const stream = messages(response);
  const { value: first } = await stream.next();
  const { notifications, _meta } = first.params;

  assert.equal(response.status, 200);
  assert.equal(first.method, "notifications/subscriptions/acknowledged");
  TaskSubscriptionAcknowledgedNotificationsV2Schema.parse(notifications);

  const heard = (async () => {
    const tasks = [];
    for await (const message of stream) {
      TaskStatusNotificationV2Schema.parse(message);
      assert.equal(message.params._meta[subscription], _meta[subscription]);
      tasks.push(message.params);
      if (enough(tasks)) break;
    }
    stop.abort();
    return tasks;
  })();

  return { acknowledged: notifications.taskIds, heard,
           close: () => { heard.catch(() => {}); stop.abort(); } };
}

const ended = (tasks) =>
  /^(completed|failed|cancelled)$/.test(tasks.at(-1).status);
const statuses = (tasks) => tasks.map((task) => task.status);


const tests = {

  async "from working to completed, with the result"() {
    const id = await create("count", { to: 3, delay: 0.2 });
    const tasks = await (await listen([id], ended)).heard;
    assert.equal(tasks[0].status, "working");
    assert.equal(tasks.at(-1).status, "completed");
    assert.equal(tasks.at(-1).result.content[0].text, "counted to 3");
    assert.ok(tasks.some((task) => task.statusMessage === "at 2"));
  },

  async "each as tasks/get has it"() {
    const id = await create("count", { to: 1 });
    const tasks = await (await listen([id], ended)).heard;
    const got = await call("tasks/get", { taskId: id });
    GetTaskResultV2Schema.parse(got);
    const { resultType, _meta: server, ...task } = got;
    const { _meta, ...told } = tasks.at(-1);
    assert.equal(resultType, "complete");
    assert.equal(server["io.modelcontextprotocol/serverInfo"].name,
                 "nginx-mcp-tasks");
    assert.deepEqual(told, task);
  },

  async "a question, its answer, the end"() {
    const id = await create("confirm_delete", { filename: "a.txt" });
    const asked = (tasks) => tasks.at(-1).status === "input_required";
    const { inputRequests } = (await (await listen([id], asked)).heard).at(-1);
    assert.equal(inputRequests.confirm.method, "elicitation/create");
    const rest = await listen([id], ended);
    await call("tasks/update", { taskId: id, inputResponses: {
      confirm: { action: "accept", content: { confirm: true } } } });
    assert.equal(statuses(await rest.heard).at(-1), "completed");
  },

  async "a failure, with its error"() {
    const id = await create("protocol_error_job");
    const last = (await (await listen([id], ended)).heard).at(-1);
    assert.equal(last.status, "failed");
    assert.equal(last.error.code, -32603);
  },

  async "a cancellation"() {
    const id = await create("slow_compute", { seconds: 30 });
    const { heard } = await listen([id], ended);
    await call("tasks/cancel", { taskId: id });
    assert.equal(statuses(await heard).at(-1), "cancelled");
  },

  async "a task that has ended before"() {
    const id = await create("count", { to: 0 });
    while ((await call("tasks/get", { taskId: id })).status !== "completed")
      await sleep(50);
    const tasks = await (await listen([id], ended)).heard;
    assert.deepEqual(statuses(tasks), ["completed"]);
  },

  async "several tasks, and only those"() {
    const ids = await Promise.all([1, 2, 3].map(() =>
      create("count", { to: 2, delay: 0.2 })));
    const both = (tasks) => tasks.filter((task) =>
      task.status === "completed").length === 2;
    const { acknowledged, heard } = await listen(ids.slice(0, 2), both);
    assert.deepEqual(acknowledged.sort(), ids.slice(0, 2).sort());
    assert.ok((await heard).every((task) => task.taskId !== ids[2]));
  },

  async "tasks that do not exist are not acknowledged"() {
    const id = await create("slow_compute", { seconds: 1 });
    const subscribed = await listen([id, "nothing"]);
    assert.deepEqual(subscribed.acknowledged, [id]);
    subscribed.close();
  },

  async "many listen to one task, over all processes"() {
    const id = await create("count", { to: 3, delay: 0.2 });
    const all = await Promise.all(Array.from({ length: 20 }, () =>
      listen([id], ended)));
    for (const { heard } of all)
      assert.equal(statuses(await heard).at(-1), "completed");
  },

  async "a client that has not declared the extension"() {
    const response = await modern(url, { method: "subscriptions/listen",
      params: { notifications: { taskIds: ["x"] },
                _meta: { ...meta(), [capability]: {} } } });
    const { error } = await answer(response);
    assert.equal(response.status, 400);
    assert.equal(error.code, -32021);
    assert.deepEqual(error.data.requiredCapabilities,
      { extensions: { "io.modelcontextprotocol/tasks": {} } });
  },
};


export async function run(context) {
  report.heading("subscriptions/listen, 2026-07-28");
  url = `${context.url}/mcp`;

  for (const [name, body] of Object.entries(tests))
    await report.test(`${name} (subscriptions)`, body);
}
