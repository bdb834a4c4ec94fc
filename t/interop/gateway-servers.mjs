// The gateway in front of servers that people use: programs that serve what
// speaks on standard input and output (supergateway, mcp-proxy), and FastMCP.

import assert from "node:assert/strict";
import { create, legacyClients, related, result, stream, until }
  from "./clients-legacy.mjs";
import { answering, modernClients, settled } from "./clients-modern.mjs";
import * as report from "./report.mjs";

const here = import.meta.dirname;
const packages = `${here}/node_modules`;
const everything =
  `${packages}/@modelcontextprotocol/server-everything/dist/index.js`;

// what the tools of a server are called, with what they are called
const ours = {
  echo: ["echo", { text: "x" }], said: "x",
  slow: ["slow", { ms: 2000, steps: 4 }],
  endless: ["slow", { ms: 600000, steps: 600 }],
  fail: ["fail", {}],
  ask: ["ask", { label: "y" }],
};

const theirs = {
  echo: ["echo", { message: "x" }], said: "Echo: x",
  slow: ["trigger-long-running-operation", { duration: 2, steps: 4 }],
  endless: ["trigger-long-running-operation", { duration: 600, steps: 600 }],
  fail: ["get-sum", { a: "x" }],
  ask: ["trigger-elicitation-request", {}],
};


// Each with the port that gateway.conf knows, what starts it, and the eras in
// which it is asked; "asks" is false where it does not pass on questions.
const servers = {
  "supergateway --stateful": {
    path: "/supergateway/legacy/mcp", port: "supergateway",
    eras: ["legacy"], asks: true, tools: theirs,
    args: (port) => supergateway(port, `${everything} stdio`, "--stateful"),
  },

  // it starts the server anew for every request
  "supergateway": {
    path: "/supergateway/modern/mcp", port: "stateless",
    eras: ["modern"], asks: true, tools: ours,
    args: (port) => supergateway(port, `${here}/upstream-modern.mjs stdio`),
  },

  "mcp-proxy": {
    path: "/mcp-proxy/mcp", port: "mcpproxy",
    eras: ["legacy", "modern"], asks: false, tools: ours,
    args: (port) => [`${packages}/mcp-proxy/dist/bin/mcp-proxy.mjs`,
                     "--host", "127.0.0.1", "--port", String(port),
                     "--upstreamProtocol", "auto", "--", process.execPath,
                     `${here}/upstream-modern.mjs`, "stdio"],
  },

  "FastMCP": {
    path: "/fastmcp/mcp", port: "fastmcp",
    eras: ["legacy"], asks: true, tools: ours,
    args: (port) => [`${here}/upstream-fastmcp.mjs`, String(port)],
  },
};

// from Debian, hence the version that it has today
const fastmcpPython = {
  path: "/fastmcp-python/mcp", port: "python",
  eras: ["legacy"], asks: true, tools: ours,
  command: `${here}/../../build/python-mcp/python`,
  args: (port) => [`${here}/upstream-fastmcp.py`, String(port)],
};

function supergateway(port, server, ...options) {
  return ["--import", `${here}/loopback.mjs`,
          `${packages}/supergateway/dist/index.js`, "--stdio",
          `${process.execPath} ${server}`, "--outputTransport",
          "streamableHttp", "--port", String(port), ...options];
}

const text = ({ content }) => content.map((one) => one.text).join("");


const legacy = {

  async "every tool may be a task"({ client }) {
    const { tools: all } = await client.listTools();
    assert.ok(all.length > 2);
    assert.ok(all.every(({ execution }) => execution?.taskSupport));
  },

  async "a plain call, with progress"({ client }, { slow: [name, args] }) {
    const shown = [];
    const said = await client.callTool({ name, arguments: args }, undefined,
      { onprogress: ({ progress }) => shown.push(progress) });
    assert.match(text(said), /worked|completed/);
    report.increases(shown);
  },

  async "a task"({ client }, { echo: [name, args], said }) {
    const { taskId } = await create(client, name, args);
    const { _meta, ...rest } = await result(client, taskId);
    assert.equal(_meta[related].taskId, taskId);
    assert.equal(text(rest), said);
  },

  async "a task that takes some seconds"({ client }, { slow }) {
    const told = await stream(client, ...slow);
    assert.equal(told[0].type, "taskCreated");
    assert.match(text(told.at(-1).result), /worked|completed/);
  },

  async "a task that fails"({ client }, { fail }) {
    const { taskId } = await create(client, ...fail);
    const { isError } = await result(client, taskId);
    assert.equal(isError, true);
    assert.equal((await until(client, taskId, "failed")).taskId, taskId);
  },

  async "a task that asks"({ client, asked }, { ask }) {
    const { taskId } = await create(client, ...ask);
    const said = await result(client, taskId);
    assert.equal(asked.length, 1);
    assert.match(text(said), /Ann/);
  },

  async "a task that is cancelled"({ client }, { endless }) {
    const { taskId } = await create(client, ...endless);
    const { status } = await client.experimental.tasks.cancelTask(taskId);
    assert.equal(status, "cancelled");
  },
};


const modern = {

  async "a task"({ session }, { echo, said }) {
    const { outcome } = await settled(await session.callTool(...echo));
    assert.equal(text(outcome.result), said);
  },

  async "a task that takes some seconds"({ session }, { slow }) {
    const { outcome, seen } = await settled(await session.callTool(...slow));
    assert.equal(outcome.status, "completed");
    assert.match(text(outcome.result), /worked/);
    assert.ok(seen.includes("working"));
  },

  async "a task that fails"({ session }, { fail }) {
    const { outcome } = await settled(await session.callTool(...fail));
    assert.equal(outcome.result.isError, true);
  },

  async "a task that asks"({ session, asked }, { ask }) {
    const { outcome } = await settled(await session.callTool(...ask));
    assert.equal(asked.length, 1);
    assert.match(text(outcome.result), /Ann/);
  },
};


async function inEra(gateway, era, title, { path, asks, tools }, line) {
  const defaults = { base: gateway.url, path, owner: "ann" };
  const { onInputRequest, asked } = answering();
  const clients = era === "legacy" ? legacyClients(defaults)
                                   : modernClients(defaults,
                                                   { onInputRequest });
  let it;
  await line(`${era === "legacy" ? "2025-11-25" : "2026-07-28"} (${title})`,
    async () => {
      if (era === "legacy") {
        it = await clients.answering({ name: "Ann", check: true });
        assert.equal(it.client.transport.protocolVersion, "2025-11-25");
      } else {
        it = { session: await clients.session({ mode: { pin: "2026-07-28" } }),
               asked };
      }
    });

  if (it)
    for (const [what, body] of Object.entries(era === "legacy" ? legacy
                                                               : modern))
      if (asks || what !== "a task that asks")
        await line(`${what}, ${era} (${title})`, () => body(it, tools));

  await clients.close();
}


export async function run(gateway) {
  const { version, missing } = await gateway.python;
  const all = { ...servers };
  if (version) all[`FastMCP for Python ${version}`] = fastmcpPython;

  await report.together("Servers that people use, behind the gateway",
    Object.entries(all).map(([title, server]) => async (line) => {
      const { command = process.execPath, args, eras } = server;
      const port = gateway.ports[server.port];
      let up;
      await line(`starts (${title})`, async () => {
        await gateway.up(gateway.start(command, args(port)), port);
        up = true;
      });
      if (up) for (const era of eras)
        await inEra(gateway, era, title, server, line);
    }));

  if (missing) report.notApplicable("FastMCP for Python", missing);
}
