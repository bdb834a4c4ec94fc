// An MCP server with tasks, as the TypeScript SDK of 2025-11-25 makes them,
// in memory: what `make bench` compares with.
//
//     node sdk-tasks.mjs PORT
//
// /json answers with JSON, /sse with event streams; /bare is /json without
// Express.  Its tool "bench" makes a task that nobody works on.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { InMemoryTaskMessageQueue, InMemoryTaskStore }
  from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import { createMcpExpressApp }
  from "@modelcontextprotocol/sdk/server/express.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport }
  from "@modelcontextprotocol/sdk/server/streamableHttp.js";

const taskStore = new InMemoryTaskStore();


function create() {
  const server = new McpServer({ name: "bench", version: "1" }, {
    capabilities: { tasks: { requests: { tools: { call: {} } } } },
    taskStore, taskMessageQueue: new InMemoryTaskMessageQueue() });

  server.experimental.tasks.registerToolTask("bench",
    { description: "Does nothing.", execution: { taskSupport: "required" } },
    { createTask: async (extra) => ({ task:
        await extra.taskStore.createTask({ ttl: extra.taskRequestedTtl }) }),
      getTask: (extra) => extra.taskStore.getTask(extra.taskId),
      getTaskResult: (extra) => extra.taskStore.getTaskResult(extra.taskId) });

  return server;
}


// a session has a transport of its own
function handler(enableJsonResponse) {
  const sessions = new Map();

  return async (req, res) => {
    let transport = sessions.get(req.headers["mcp-session-id"]);

    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID, enableJsonResponse,
        onsessioninitialized: (made) => { sessions.set(made, transport); } });
      await create().connect(transport);
    }

    await transport.handleRequest(req, res, req.body);
  };
}

const app = createMcpExpressApp();
app.post("/json", handler(true));
app.post("/sse", handler(false));

const bare = handler(true);
createServer((req, res) => (req.url === "/bare" ? bare : app)(req, res))
  .listen(Number(process.argv[2]), "127.0.0.1");
