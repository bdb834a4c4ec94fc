// Clients of the 2026-07-28 era, made by its TypeScript SDK, and of the tasks
// extension on top of it.

import { Client, StreamableHTTPClientTransport }
  from "@modelcontextprotocol/client";
import { createTaskSessionFromClient }
  from "@modelcontextprotocol/ext-tasks/client";
import { answer, framing, modern } from "./wire.mjs";

export const extension = "io.modelcontextprotocol/tasks";


// The SDK leaves it to the host to send what has to do with tasks.
const dispatcher = (url, owner) => async (request, options) => {
  const message = await answer(modern(url, request, {
    signal: options?.signal,
    headers: { ...(owner && { "X-Owner": owner }),
               ...options?.context?.headers },
  }));
  return message.error ? { kind: "error", error: message.error }
                       : { kind: "result", result: message.result };
};


// Those that connect() and session() make live until close().  "defaults" are
// the options of connect(), "ofSession" those of session() besides.
export function modernClients(defaults, ofSession = {}) {
  const open = [];

  const connect = async (options) => {
    const { base, path, owner, mode = "auto", capabilities = {} } =
      { ...defaults, ...options };
    const client = new Client(framing.clientInfo,
      { capabilities, versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(
      new URL(base + path),
      { requestInit: { headers: owner ? { "X-Owner": owner } : {} } }));
    open.push(client);
    return client;
  };

  const session = async (options) => {
    const { base, path, owner, mode = "auto", onInputRequest,
            endpointId = "test" } = { ...defaults, ...ofSession, ...options };
    const capabilities = { extensions: { [extension]: {} },
                           elicitation: { form: {} }, sampling: {} };
    const client = await connect({ path, mode, owner, capabilities });
    const made = createTaskSessionFromClient(client, {
      endpointId, onInputRequest,
      ...(mode !== "legacy" && {
        rawDispatch: dispatcher(base + path, owner),
        v2RequestFraming: { ...framing, clientCapabilities: capabilities },
      }),
    });
    open.push(made);
    return made;
  };

  const close = async () => {
    for (const it of open.splice(0).reverse()) await it.close();
  };

  return { open, connect, session, close };
}


// answers what it is asked, and remembers what that was
export function answering() {
  const asked = [];
  const onInputRequest = async (request, context) => {
    asked.push({ ...request, taskId: context.taskId });
    return request.kind === "sampling"
      ? { role: "assistant", model: "none",
          content: { type: "text", text: "forty-two" } }
      : { action: "accept", content: { confirm: true, name: "Ann" } };
  };
  return { asked, onInputRequest };
}


export async function settled(execution) {
  const seen = [];
  const { outcome } = await execution.settle({
    onEvent: (event) => { if (event.task) seen.push(event.task.status); },
  });
  return { outcome, seen };
}

export const refused = (code) => (e) => e.code === code;
