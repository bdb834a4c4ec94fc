// An MCP server of 2026-07-28 that knows nothing of tasks:
//
//     node upstream-modern.mjs PORT
//     node upstream-modern.mjs stdio
//
// /mcp answers with JSON, or a stream if there is something to tell before;
// /sse with streams, /json without; /both knows the era before, too, without
// sessions.  /crlf frames its streams as the Python SDK does, /gzip compresses
// answers if it may.

import { createMcpExpressApp } from "@modelcontextprotocol/express";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, createRequestStateCodec, fromJsonSchema,
         inputRequired, inputResponse, McpServer, UrlElicitationRequiredError }
  from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod/v4";
import { asking, listen, prompt, question, text, tools, watch }
  from "./upstream.mjs";

const info = { name: "upstream-modern", version: "1" };

// the SDK leaves it to the server to protect its state
const codec = createRequestStateCodec({ key: "k".repeat(32) });
const options = { capabilities: { logging: {} },
                  requestState: { verify: codec.verify } };
const object = (shape) => shape && z.object(shape);


function create() {
  const server = new McpServer(info, options);

  for (const [name, { input, output, does }] of Object.entries(tools))
    server.registerTool(name, { description: `The tool ${name}.`,
                                inputSchema: object(input),
                                outputSchema: object(output) },
      (args, { mcpReq }) => {
        const progressToken = mcpReq._meta?.progressToken;
        return does(args, {
          signal: mcpReq.signal,
          progress: progressToken === undefined ? undefined : ((params) =>
            mcpReq.notify({ method: "notifications/progress",
                            params: { progressToken, ...params } })),
          log: (data) => mcpReq.log("info", data),
        });
      });

  // which the SDK takes for a mistake, and answers with an error
  server.registerTool("throws", { description: "Fails with an error." }, () => {
    throw new UrlElicitationRequiredError([{
      mode: "url", message: "Log in first", url: "https://example.com/login",
      elicitationId: "login" }]);
  });

  // the second question has the same key as the first
  server.registerTool("ask", { description: "Asks for a name, or two.",
                               inputSchema: object(asking) },
    async ({ label = "", twice }, { mcpReq }) => {
      const had = mcpReq.requestState() ?? [];
      const answer = mcpReq.inputResponses?.name;
      const answers = answer ? [...had, answer] : had;
      const which = answers.length ? `${label} again` : label;

      if (answers.length < (twice ? 2 : 1))
        return inputRequired({
          inputRequests: { name: inputRequired.elicit(question(which)) },
          requestState: await codec.mint(answers),
        });

      return text(JSON.stringify(answers));
    });

  server.registerTool("sample", { description: "Asks the client's model.",
                                  inputSchema: object(asking) },
    async ({ label = "" }, { mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, "model");
      if (answer.kind !== "sampling")
        return inputRequired({ inputRequests: {
          model: inputRequired.createMessage(prompt(label)) } });
      return text(`The model says ${answer.result.content.text}`);
    });

  server.registerTool("routed", { description: "Is routed by a header.",
    inputSchema: fromJsonSchema({ type: "object", properties: {
      region: { type: "string", "x-mcp-header": "Region" } } }) },
    async ({ region }) => text(`routed to ${region}`));

  return server;
}


const app = createMcpExpressApp();
watch(app);

const serve = (path, factory, how, change = (response) => response) => {
  const { fetch } = createMcpHandler(factory, how);
  const handler = toNodeHandler({ fetch: async (request, options) =>
    change(await fetch(request, options), request) });
  app.all(path, (req, res) => handler(req, res, req.body));
};


function crlf(response) {
  const { body, status, headers } = response;
  if (headers.get("content-type") !== "text/event-stream") return response;

  const lines = new TransformStream({
    start: (out) => out.enqueue(": ping\r\n\r\n"),
    transform: (chunk, out) => out.enqueue(chunk.replaceAll("\n", "\r\n")),
  });
  return new Response(body.pipeThrough(new TextDecoderStream())
    .pipeThrough(lines).pipeThrough(new TextEncoderStream()),
    { status, headers });
}


function gzip(response, request) {
  if (!/gzip/.test(request.headers.get("accept-encoding"))) return response;
  const headers = new Headers(response.headers);
  headers.set("Content-Encoding", "gzip");
  return new Response(response.body.pipeThrough(new CompressionStream("gzip")),
                      { status: response.status, headers });
}

serve("/mcp", create, { legacy: "reject" });
serve("/sse", create, { legacy: "reject", responseMode: "sse" });
serve("/json", create, { legacy: "reject", responseMode: "json" });
serve("/both", create, {});
serve("/crlf", create, { legacy: "reject", responseMode: "sse" }, crlf);
serve("/gzip", create, { legacy: "reject" }, gzip);

if (process.argv[2] === "stdio") serveStdio(create);
else listen(app);
