// The gateway in front of the protocol's own reference server, of 2025-11-25,
// which has much that is not the gateway's business.

import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { LoggingMessageNotificationSchema, ListRootsRequestSchema,
         ResourceUpdatedNotificationSchema }
  from "@modelcontextprotocol/sdk/types.js";
import { answers, create, legacyClients, related, result, stream }
  from "./clients-legacy.mjs";
import * as report from "./report.mjs";

const defaults = { path: "/everything/mcp", owner: "ann" };
const { connect, answering, close } = legacyClients(defaults);

let plain;


const plainly = {

  async "prompts"() {
    const client = await connect();
    const { prompts } = await client.listPrompts();
    assert.ok(prompts.length > 2);
    const { messages } = await client.getPrompt(
      { name: "args-prompt", arguments: { city: "Oslo" } });
    assert.match(messages[0].content.text, /Oslo/);
  },

  async "completions"() {
    const client = await connect();
    const { completion } = await client.complete({
      ref: { type: "ref/prompt", name: "completable-prompt" },
      argument: { name: "department", value: "S" } });
    assert.ok(completion.values.includes("Sales"));
  },

  async "resources"() {
    const client = await connect();
    const { resources } = await client.listResources();
    const { contents } = await client.readResource({ uri: resources[0].uri });
    assert.ok(contents[0].text.length > 0);
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.ok(resourceTemplates.length > 0);
    const dynamic = await client.readResource(
      { uri: "demo://resource/dynamic/text/1" });
    assert.match(dynamic.contents[0].text, /Resource 1/);
  },

  async "notifications of resources on the session's stream"() {
    const client = await connect();
    const events = new EventEmitter();
    client.setNotificationHandler(ResourceUpdatedNotificationSchema,
      ({ params }) => events.emit("updated", params));
    const uri = "demo://resource/dynamic/text/1";
    await client.subscribeResource({ uri });
    const told = once(events, "updated");
    await client.callTool({ name: "toggle-subscriber-updates", arguments: {} });
    assert.equal((await told)[0].uri, uri);
    await client.unsubscribeResource({ uri });
  },

  async "log messages, at the level that was set"() {
    const client = await connect();
    const events = new EventEmitter();
    client.setNotificationHandler(LoggingMessageNotificationSchema,
      ({ params }) => events.emit("log", params));
    await client.setLoggingLevel("debug");
    const told = once(events, "log");
    await client.callTool({ name: "toggle-simulated-logging", arguments: {} });
    assert.ok((await told)[0].level);
  },

  async "the server asks for roots on the session's stream"() {
    const events = new EventEmitter();
    const client = await connect({ capabilities: { roots: {} } });
    client.setRequestHandler(ListRootsRequestSchema, async () => {
      setImmediate(() => events.emit("asked"));
      return { roots: [{ uri: "file:///srv", name: "srv" }] };
    });
    await once(events, "asked");
    const { content } = await client.callTool({ name: "get-roots-list",
                                                arguments: {} });
    assert.match(JSON.stringify(content), /file:\/\/\/srv/);
  },

  async "content of all kinds"() {
    const client = await connect();
    const { content } = await client.callTool({ name: "get-tiny-image",
                                                arguments: {} });
    assert.ok(content.some(({ type }) => type === "image"));
    const links = await client.callTool({ name: "get-resource-links",
                                          arguments: { count: 2 } });
    assert.ok(links.content.some(({ type }) => type === "resource_link"));
  },

  async "progress"() {
    const client = await connect();
    const told = [];
    await client.callTool(
      { name: "trigger-long-running-operation",
        arguments: { duration: 1, steps: 4 } },
      undefined, { onprogress: ({ progress }) => told.push(progress) });
    assert.deepEqual(told, [1, 2, 3, 4]);
  },
};


const asTasks = {

  async "what the server is, and has"() {
    const client = await connect();
    const bare = await connect({ base: plain });
    const { tasks, ...rest } = client.getServerCapabilities();
    const { tasks: own, ...theirs } = bare.getServerCapabilities();
    assert.deepEqual(rest, theirs);
    assert.ok(tasks.requests.tools.call);
    assert.equal(client.getInstructions(), bare.getInstructions());
    assert.deepEqual(client.getServerVersion(), bare.getServerVersion());
  },

  async "tools that were never for tasks are now"() {
    const client = await connect();
    const { tools } = await client.listTools();
    const { execution } = tools.find(({ name }) =>
      name === "trigger-long-running-operation");
    assert.equal(execution.taskSupport, "optional");
  },

  async "a long call"() {
    const client = await connect();
    const told = await stream(client, "trigger-long-running-operation",
                              { duration: 2, steps: 4 });
    assert.equal(told[0].type, "taskCreated");
    assert.match(told.at(-1).result.content[0].text, /completed/);
  },

  async "results are what the server said"() {
    const client = await connect();
    const bare = await connect({ base: plain });
    for (const [name, args] of [
      ["echo", { message: "x" }], ["get-sum", { a: 2, b: 40 }],
      ["get-tiny-image", {}],
      ["get-structured-content", { location: "Chicago" }],
      ["get-annotated-message", { messageType: "error", includeImage: true }],
    ]) {
      const { taskId } = await create(client, name, args);
      const { _meta, ...rest } = await result(client, taskId);
      assert.equal(_meta[related].taskId, taskId);
      assert.deepEqual(rest, await bare.callTool({ name, arguments: args }));
    }
  },

  async "elicitation"() {
    const { client, asked } = await answering({ name: "Ann", check: true });
    await client.listTools();
    const { taskId } = await create(client, "trigger-elicitation-request", {});
    const { content } = await result(client, taskId);
    assert.equal(asked.length, 1);
    assert.ok(asked[0].params.requestedSchema.properties.name);
    assert.match(JSON.stringify(content), /Ann/);
  },

  async "sampling"() {
    const { client, asked } = await answering();
    const { taskId } = await create(client, "trigger-sampling-request",
                                    { prompt: "6 x 9?", maxTokens: 10 });
    const { content } = await result(client, taskId);
    assert.equal(asked.length, 1);
    assert.match(JSON.stringify(content), /forty-two/);
  },

  async "cancel"() {
    const client = await connect({ capabilities: answers });
    const { taskId } = await create(client, "trigger-long-running-operation",
                                    { duration: 60, steps: 6 });
    const { status } = await client.experimental.tasks.cancelTask(taskId);
    assert.equal(status, "cancelled");
  },
};


async function all(tests, where) {
  for (const [name, body] of Object.entries(tests)) {
    await report.test(`${name} (${where})`, body);
    await close();
  }
}


export async function run(gateway) {
  ({ plain } = gateway);

  report.heading("server-everything without the gateway");
  defaults.base = plain;
  await all(plainly, "everything, without");

  report.heading("server-everything behind the gateway");
  defaults.base = gateway.url;
  await all(plainly, "everything, plainly");
  await all(asTasks, "everything, tasks");
}
