// Clients that people use, through the gateway: none of them knows tasks, so
// their calls are passed to the server behind it.

import assert from "node:assert/strict";
import { hosts, opened } from "./hosts.mjs";
import * as report from "./report.mjs";

// In front of which servers, by what a client offers: clients of both eras find
// out which one the server speaks, also if nginx tells them.
const paths = {
  "2025-11-25": ["/legacy/mcp"],
  "2026-07-28": ["/modern/mcp", "/untold/legacy", "/legacy/mcp"],
};


const tests = {

  async "lists the tools"(client) {
    const names = await client.names();
    for (const name of ["echo", "slow", "ask"])
      assert.ok(names.includes(name), name);
  },

  async "a quick call"(client) {
    assert.equal((await client.call("echo", { text: "x" })).text, "x");
  },

  async "a call that takes some seconds"(client, { progresses }) {
    const shown = [];
    const { text } = await client.call("slow", { ms: 3000, steps: 6 },
      { onprogress: ({ progress }) => shown.push(progress) });
    assert.match(text, /worked 3000 ms/);
    if (progresses) report.increases(shown);
  },

  async "a tool that fails"(client) {
    const { text, isError } = await client.call("fail", {});
    assert.ok(isError);
    assert.match(text, /it broke/);
  },

  async "a question"(client, { asked }) {
    const { text } = await client.call("ask", { label: "x" });
    assert.equal(asked.length, 1);
    assert.match(asked[0].params.message, /name, for x/);
    assert.match(text, /Ann/);
  },
};

async function all(gateway, name, path, line) {
  const { title, offers, connect, ...can } = hosts[name];
  const as = `${name}${path}`;
  const asked = [];
  const answer = async (request) => {
    asked.push(request);
    return { action: "accept", content: { name: "Ann" } };
  };

  let client;
  await line(`opens with ${offers} (${title}, ${path})`, async () => {
    client = await connect(`${gateway.url}${path}?as=${as}`,
                           { dir: gateway.dir, ...(can.asks && { answer }) });
    assert.equal(opened(gateway.dir, as)[0], offers);
  });
  if (!client) return;

  for (const [what, body] of Object.entries(tests))
    if (can.asks || what !== "a question")
      await line(`${what} (${title}, ${path})`,
                 () => body(client, { ...can, asked }));

  await line(`closes (${title}, ${path})`, () => client.close());
}


export async function run(gateway) {
  await report.together("Clients that people use, through the gateway",
    Object.entries(hosts).map(([name, { offers }]) => async (line) => {
      for (const path of paths[offers]) await all(gateway, name, path, line);
    }));
}
