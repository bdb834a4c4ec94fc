// Clients that people use, with the queue: what their users do with them.

import assert from "node:assert/strict";
import { hosts, opened } from "./hosts.mjs";
import * as report from "./report.mjs";


const tests = {

  async "lists the tools"(client) {
    const names = await client.names();
    for (const name of ["greet", "slow_compute", "failing_job"])
      assert.ok(names.includes(name), name);
  },

  async "a quick call"(client) {
    const { text, isError } = await client.call("greet", { name: "Ann" });
    assert.equal(text, "Hello, Ann!");
    assert.ok(!isError);
  },

  async "a call that takes some seconds"(client, { progresses }) {
    const shown = [];
    const { text, isError } = await client.call("count", { to: 5, delay: 1 },
      { onprogress: ({ progress }) => shown.push(progress) });
    assert.equal(text, "counted to 5");
    assert.ok(!isError);
    if (progresses) report.increases(shown);
  },

  async "structured content"(client) {
    const { structured } = await client.call("structured", { city: "Oslo" });
    assert.deepEqual(structured, { city: "Oslo", degrees: 21.5 });
  },

  async "a tool that fails"(client) {
    const { text, isError } = await client.call("test_error_handling", {});
    assert.ok(isError);
    assert.match(text, /This never works/);
  },

  async "an error of the protocol"(client) {
    const { text } = await client.call("protocol_error_job", {})
      .catch((e) => ({ text: e.message }));
    assert.match(text, /this job breaks the protocol/);
  },

  async "a tool that is only for tasks says so"(client) {
    const { text } = await client.call("failing_job", {})
      .catch((e) => ({ text: e.message }));
    assert.match(text, /task|Missing required client capability/);
  },

  async "a question"(client, { asked }) {
    const { text } = await client.call("confirm_delete", { filename: "x" });
    assert.equal(asked.length, 1);
    assert.equal(asked[0].params.message, "Delete x?");
    assert.match(text, /"confirm":true/);
  },
};

// All of it with one connection, as in the life of an application.
async function all(server, name, line) {
  const { title, offers, connect, ...can } = hosts[name];
  const asked = [];
  const answer = async (request) => {
    asked.push(request);
    return { action: "accept", content: { confirm: true } };
  };

  let client;
  await line(`opens with ${offers} (${title})`, async () => {
    client = await connect(`${server.url}/mcp?as=${name}`,
                           { dir: server.dir,
                             ...(can.asks && { answer }) });
    assert.equal(opened(server.dir, name)[0], offers);
  });
  if (!client) return;

  for (const [what, body] of Object.entries(tests))
    if (can.asks || what !== "a question")
      await line(`${what} (${title})`,
                 () => body(client, { ...can, asked }));

  await line(`closes (${title})`, () => client.close());
}


export async function run(server) {
  await report.together("Clients that people use, with the queue",
    Object.keys(hosts).map((name) => (line) => all(server, name, line)));
}
