// Imported before a client's own code (node --import), this writes every
// message that the client receives by fetch() into the file MCP_TASKS_RECORD,
// with the request that led to it, a line of JSON each:
//
//     {"method":"POST","headers":{...},"request":{...},"status":200,
//      "message":{...}}
//
// A message that has a key twice also has "duplicate", that key.
//
// Responses pass through as they come, and are cut when the client cuts them.

import { appendFileSync } from "node:fs";
import { duplicateKey } from "./keys.mjs";

const file = process.env.MCP_TASKS_RECORD;
const fetch = globalThis.fetch;


function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;             // some tests send what is no JSON on purpose
  }
}


function received(text) {
  const message = parsed(text);
  return message === undefined ? {}
    : { message, duplicate: duplicateKey(text) };
}


// a stream that passes bytes on, and hands complete messages to "found"
function listener(type, found) {
  const decoder = new TextDecoder();
  let text = "";

  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk);
      text += decoder.decode(chunk, { stream: true });
      if (!type.startsWith("text/event-stream")) return;

      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) {
        const data = event.split("\n").filter((l) => l.startsWith("data:"))
          .map((l) => l.slice(5).trim()).join("\n");
        if (data) found(received(data));
      }
    },

    flush() {
      if (type.startsWith("application/json")) found(received(text));
    },
  });
}


globalThis.fetch = async (input, init = {}) => {
  const response = await fetch(input, init);
  const type = response.headers.get("content-type") ?? "";
  const { pathname } = new URL(input.url ?? input);

  if (!file || !response.body || !/^\/(mcp|named)$/.test(pathname))
    return response;

  const about = {
    method: init.method ?? "GET",
    headers: Object.fromEntries(new Headers(init.headers)),
    request: parsed(init.body),
    status: response.status,
  };

  const body = response.body.pipeThrough(listener(type, (it) =>
    appendFileSync(file, `${JSON.stringify({ ...about, ...it })}\n`)));

  const { status, statusText, headers, url } = response;
  const copy = new Response(body, { status, statusText, headers });
  return Object.defineProperty(copy, "url", { value: url });
};
