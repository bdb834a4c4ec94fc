// Clients of the 2025-11-25 era, made by its TypeScript SDK, and what is done
// with them over and over.

import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport }
  from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, CreateMessageRequestSchema,
         CreateTaskResultSchema, ElicitRequestSchema }
  from "@modelcontextprotocol/sdk/types.js";

export const related = "io.modelcontextprotocol/related-task";
export const answers = { elicitation: { form: {} }, sampling: {} };


// those that connect() makes live until close()
export function legacyClients(defaults) {
  const open = [];

  const connect = async (options) => {
    const { base, path, owner, capabilities = {}, fetch } =
      { ...defaults, ...options };
    const client = new Client({ name: "interop", version: "1" },
                              { capabilities });
    client.onerror = () => {};
    const transport = new StreamableHTTPClientTransport(new URL(base + path), {
      requestInit: { headers: owner ? { "X-Owner": owner } : {} }, fetch,
    });
    await client.connect(transport);
    open.push(client);
    return client;
  };

  // a client that accepts whatever it is asked, and remembers what that was
  const answering = async (content, options) => {
    const client = await connect({ capabilities: answers, ...options });
    const asked = [];
    client.setRequestHandler(ElicitRequestSchema, async (request) => {
      asked.push(request);
      return { action: "accept", content };
    });
    client.setRequestHandler(CreateMessageRequestSchema, async (request) => {
      asked.push(request);
      return { role: "assistant", model: "none", stopReason: "endTurn",
               content: { type: "text", text: "forty-two" } };
    });
    return { client, asked };
  };

  const close = () =>
    Promise.all(open.splice(0).map((client) => client.close()));

  return { connect, answering, close };
}


export async function create(client, name, args, task = {}) {
  const { task: made } = await client.request(
    { method: "tools/call", params: { name, arguments: args, task } },
    CreateTaskResultSchema);
  return made;
}


export const result = (client, id) =>
  client.experimental.tasks.getTaskResult(id, CallToolResultSchema);

export async function until(client, id, status) {
  for (;;) {
    const task = await client.experimental.tasks.getTask(id);
    if (task.status === status) return task;
    await sleep(task.pollInterval);
  }
}

export async function stream(client, name, args, options) {
  const messages = [];
  for await (const message of client.experimental.tasks.callToolStream(
    { name, arguments: args }, CallToolResultSchema,
    { task: {}, ...options })) messages.push(message);
  return messages;
}

export const types = (messages) => [...new Set(messages.map((m) => m.type))];
export const refused = (code) => (e) => e.code === code;
