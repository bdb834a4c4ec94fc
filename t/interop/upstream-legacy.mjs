// An MCP server of 2025-11-25 that knows nothing of tasks, with sessions:
//
//     node upstream-legacy.mjs PORT
//
// /mcp answers with event streams, /json with JSON, /resumable with streams
// that can be resumed (and one tool closes them on purpose).

import { randomUUID } from "node:crypto";
import { createMcpExpressApp }
  from "@modelcontextprotocol/sdk/server/express.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport }
  from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { isInitializeRequest, UrlElicitationRequiredError }
  from "@modelcontextprotocol/sdk/types.js";
import * as z from "zod/v4";
import { asking, askingAside, eventStore, listen, prompt, question, text, tools,
         watch } from "./upstream.mjs";


function create() {
  const server = new McpServer({ name: "upstream-legacy", version: "1" },
                               { capabilities: { logging: {} } });

  for (const [name, { input, output, does }] of Object.entries(tools))
    server.registerTool(name, { description: `The tool ${name}.`,
                                inputSchema: input, outputSchema: output },
      (args, extra) => {
        const progressToken = extra._meta?.progressToken;
        return does(args, {
          signal: extra.signal,
          progress: progressToken === undefined ? undefined : ((params) =>
            extra.sendNotification({ method: "notifications/progress",
                                     params: { progressToken, ...params } })),
          log: (data) => extra.sendNotification({
            method: "notifications/message", params: { level: "info", data } }),
        });
      });

  // the only error that the SDK does not turn into a result
  server.registerTool("throws", { description: "Fails with an error." }, () => {
    throw new UrlElicitationRequiredError([{
      mode: "url", message: "Log in first", url: "https://example.com/login",
      elicitationId: "login" }]);
  });

  server.registerTool("ask", { description: "Asks for a name, or two.",
                               inputSchema: askingAside },
    async ({ label = "", twice, aside, patience }, extra) => {
      const answers = [];
      for (const which of twice ? [label, `${label} again`] : [label])
        answers.push(await server.server.elicitInput(question(which), {
          signal: extra.signal,
          ...(!aside && { relatedRequestId: extra.requestId }),
          ...(patience && { timeout: patience }),
        }));
      return text(JSON.stringify(answers));
    });

  server.registerTool("sample", { description: "Asks the client's model.",
                                  inputSchema: asking },
    async ({ label = "" }, extra) => {
      const { content } = await server.server.createMessage(prompt(label),
        { relatedRequestId: extra.requestId, signal: extra.signal });
      return text(`The model says ${content.text}`);
    });

  server.registerTool("polled", { description: "Closes the call's stream.",
                                  inputSchema: { ms: z.number() } },
    async ({ ms }, extra) => {
      extra.closeSSEStream?.();
      await new Promise((resolve) => setTimeout(resolve, ms));
      return text("it went on");
    });

  return server;
}


const app = createMcpExpressApp();
watch(app);


// as the SDK's own examples have it
function serve(path, options) {
  const sessions = new Map();

  app.all(path, async (req, res) => {
    const id = req.headers["mcp-session-id"];
    let transport = sessions.get(id);

    if (!transport && id !== undefined)
      return res.status(404).json({ jsonrpc: "2.0", id: null, error: {
        code: -32001, message: "Session not found" } });

    if (!transport && !isInitializeRequest(req.body))
      return res.status(400).json({ jsonrpc: "2.0", id: null, error: {
        code: -32000, message: "Bad Request: No valid session ID provided" } });

    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (made) => { sessions.set(made, transport); },
        ...options(),
      });
      transport.onclose = () => sessions.delete(transport.sessionId);
      await create().connect(transport);
    }

    await transport.handleRequest(req, res, req.body);
  });
}

serve("/mcp", () => ({}));
serve("/json", () => ({ enableJsonResponse: true }));
serve("/resumable", () => ({ eventStore: eventStore(), retryInterval: 500 }));

listen(app);
