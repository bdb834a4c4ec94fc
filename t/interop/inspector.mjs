// The MCP Inspector's command line, in both eras.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import * as report from "./report.mjs";

const inspector = `${import.meta.dirname}/node_modules/@modelcontextprotocol/`
                + "inspector/clients/launcher/build/index.js";


// what it prints, and the status it exits with
function inspect({ url, dir, env }, era, method, ...args) {
  const command = [inspector, "--cli", "--server-url", `${url}/mcp`,
                   "--transport", "http", "--protocol-era", era,
                   "--format", "json", "--quiet", "--method", method, ...args];

  return new Promise((resolve, reject) => {
    // it keeps files in the home directory: not in the user's
    const options = { timeout: 30000, env: { ...env, HOME: dir } };
    execFile(process.execPath, command, options, (error, stdout, stderr) => {
      if (error && typeof error.code !== "number") return reject(error);
      const said = (text) => text.trim() ? JSON.parse(text) : undefined;
      resolve({ status: error?.code ?? 0, out: said(stdout)?.result,
                error: said(stderr.split("\n").at(-2) ?? "")?.error });
    });
  });
}


// Each calls inspect() with what is given, and looks at the outcome; "modern"
// says for which era.
const tests = {

  "initialize": async (ask, modern) => {
    const { status, out } = await ask("initialize");
    assert.equal(status, 0);
    assert.equal(out.serverInfo.name, "nginx-mcp-tasks");
    assert.equal(out.protocolVersion, modern ? "2026-07-28" : "2025-11-25");
  },

  "tools/list, with portable schemas": async (ask) => {
    const { status, out } = await ask("tools/list", "--strict");
    assert.equal(status, 0);
    assert.ok(out.tools.some((t) => t.name === "slow_compute"));
  },

  "a call": async (ask) => {
    const { status, out } = await ask("tools/call", "--tool-name", "greet",
                                      "--tool-arg", "name=Ann");
    assert.equal(status, 0);
    assert.equal(out.content[0].text, "Hello, Ann!");
  },

  "a long call": async (ask) => {
    const { status, out } = await ask("tools/call", "--tool-name",
                                      "slow_compute", "--tool-arg",
                                      "seconds=2");
    assert.equal(status, 0);
    assert.match(out.content[0].text, /computed/);
  },

  "structured content": async (ask) => {
    const { status, out } = await ask("tools/call", "--tool-name",
                                      "structured", "--tool-arg", "city=Oslo");
    assert.equal(status, 0);
    assert.deepEqual(out.structuredContent, { city: "Oslo", degrees: 21.5 });
  },

  "an argument that is repeated in a header": async (ask) => {
    const { status, out } = await ask("tools/call", "--tool-name", "routed",
                                      "--tool-arg", "region=eu");
    assert.equal(status, 0);
    assert.equal(out.content[0].text, "routed to eu");
  },

  "a tool that is only for tasks, and fails": async (ask, modern) => {
    const { status, out, error } = await ask("tools/call", "--tool-name",
                                             "failing_job");
    assert.notEqual(status, 0);
    if (modern) assert.equal(out.isError, true);
    else assert.match(error.message, /always fails/);
  },

  "a protocol error": async (ask) => {
    const { status, error } = await ask("tools/call", "--tool-name",
                                        "protocol_error_job");
    assert.notEqual(status, 0);
    assert.match(error.message, /breaks the protocol/);
  },

  "a tool that is not there": async (ask) => {
    const { error } = await ask("tools/call", "--tool-name", "nothing");
    assert.equal(error.code, "tool_not_found");
  },

  "what is not served is empty": async (ask) => {
    const { status, out } = await ask("prompts/list");
    assert.equal(status, 0);
    assert.deepEqual(out.prompts, []);
  },
};


export async function run(context) {
  for (const [era, name] of [["legacy", "2025-11-25"],
                             ["modern", "2026-07-28"]]) {
    report.heading(`MCP Inspector 2.12, ${name}`);

    for (const [title, body] of Object.entries(tests))
      await report.test(`${title} (Inspector, ${name})`, () =>
        body((...args) => inspect(context, era, ...args), era === "modern"));
  }
}
