// Plain requests, for what no SDK sends.

import { EventSourceParserStream } from "eventsource-parser/stream";

const prefix = "io.modelcontextprotocol/";
const tasks = { [`${prefix}tasks`]: {} };

// what a modern client that knows tasks says about itself
export const framing = {
  protocolVersion: "2026-07-28",
  clientInfo: { name: "interop", version: "1" },
  clientCapabilities: { elicitation: {}, extensions: tasks },
};

export const meta = (capabilities = framing.clientCapabilities) => ({
  [`${prefix}protocolVersion`]: framing.protocolVersion,
  [`${prefix}clientInfo`]: framing.clientInfo,
  [`${prefix}clientCapabilities`]: capabilities,
});

let lastId = 0;


// the messages of an answer, as they come
export async function* messages(response) {
  const type = response.headers.get("content-type") ?? "";

  if (type.startsWith("text/event-stream")) {
    const events = response.body.pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream());
    for await (const { data } of events) if (data) yield JSON.parse(data);

  } else if (type.startsWith("application/json")) {
    yield await response.json();
  }
}


export function post(url, message, { headers = {}, signal } = {}) {
  return fetch(url, {
    method: "POST", signal, body: JSON.stringify(message),
    headers: { "Content-Type": "application/json",
               Accept: "application/json, text/event-stream", ...headers },
  });
}


// a request of the modern era, with the headers that belong to it
export function modern(url, { method, params = {} }, options = {}) {
  const full = { ...params, _meta: { ...meta(), ...params._meta } };
  const name = params.name ?? params.taskId;
  const headers = {
    "MCP-Protocol-Version": full._meta[`${prefix}protocolVersion`],
    "Mcp-Method": method,
    ...(name !== undefined && { "Mcp-Name": name }),
    ...options.headers,
  };
  return post(url, { jsonrpc: "2.0", id: ++lastId, method, params: full },
              { ...options, headers });
}


export function legacy(url, { method, params }, options = {}) {
  const headers = { "MCP-Protocol-Version": "2025-11-25", ...options.headers };
  return post(url, { jsonrpc: "2.0", id: ++lastId, method, params },
              { ...options, headers });
}


// the answer itself, which is the last message
export async function answer(response) {
  let last;
  for await (const message of messages(await response)) last = message;
  return last;
}
