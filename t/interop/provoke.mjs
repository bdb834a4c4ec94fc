// Makes the module say what no client of the other parts makes it say: answers
// to what we have added to the protocol, and to wrong requests.

import { setTimeout as sleep } from "node:timers/promises";
import { answer, legacy, meta, messages, modern, post } from "./wire.mjs";

const extended = { extensions: { "io.modelcontextprotocol/tasks": {},
                                 "io.github.nginx-mcp-tasks/extended": {} } };
const named = { headers: { "X-Owner": "pat" } };


// what we have added to the protocol
async function ourMethods(url, call, params) {
  const say = (method, more) =>
    answer(call(url, { method, params: { ...params, ...more } }, named));

  const progressToken = `token-${Math.random()}`;
  const { result } = await say("tasks/create", {
    action: "slow_compute", params: { seconds: 30 }, metadata: { a: 1 },
    progressToken,
  });
  const { taskId } = result.task ?? result;

  // as soon as a worker has it
  while ((await say("tasks/progress", { progressToken, progress: 0.5 })).error)
    await sleep(100);

  await say("tasks/list", { tool: "slow_compute", limit: 5 });
  await say("tasks/update", { taskId, metadata: { b: 2 } });
  await say("tasks/cancel", { taskId, reason: "enough" });
}


async function wrongRequests(url) {
  await answer(post(url, "not an object"));
  await answer(fetch(url, {
    method: "POST", body: "{",
    headers: { "Content-Type": "application/json",
               Accept: "application/json, text/event-stream" },
  }));
  await answer(post(url, [{ jsonrpc: "2.0", id: 1, method: "ping" }],
                    { headers: { "MCP-Protocol-Version": "2025-11-25" } }));
  await answer(legacy(url, { method: "nothing" }));
  await answer(legacy(url, { method: "tasks/get", params: {} }));
  await answer(legacy(url, { method: "ping" },
                      { headers: { "Mcp-Session-Id": "nothing" } }));
  await answer(modern(url, { method: "nothing" }));
  await answer(modern(url, { method: "tasks/get", params: { taskId: "x" } },
                      { headers: { "Mcp-Name": "y" } }));
  await answer(modern(url, { method: "tasks/get", params: { taskId: "x" } }));
  await answer(modern(url, { method: "tasks/get", params: { taskId: "x",
    _meta: { "io.modelcontextprotocol/clientCapabilities": {} } } }));
  await answer(modern(url, { method: "server/discover", params: {
    _meta: { "io.modelcontextprotocol/protocolVersion": "1999-01-01" } } }));
  await answer(post(url, { jsonrpc: "2.0", id: 1, result: {} },
                    { headers: { "MCP-Protocol-Version": "2026-07-28" } }));
}


// a question that no other test asks in the legacy era
async function roots(url) {
  const opened = await legacy(url, { method: "initialize", params: {
    protocolVersion: "2025-11-25", capabilities: { roots: {} },
    clientInfo: { name: "interop", version: "1" } } });
  const headers = { "Mcp-Session-Id": opened.headers.get("mcp-session-id") };
  await opened.text();

  const call = await legacy(url, { method: "tools/call", params: {
    name: "test_input_required_result_list_roots" } }, { headers });

  for await (const message of messages(call))
    if (message.method === "roots/list")
      await post(url, { jsonrpc: "2.0", id: message.id,
                        result: { roots: [] } }, { headers });
}


// who waits while nginx is reloaded is told
async function reloaded(url, reload) {
  const { result } = await answer(legacy(url, { method: "tools/call", params: {
    name: "slow_compute", arguments: { seconds: 60 }, task: {} } }));
  const { taskId } = result.task;

  const waiting = [
    answer(legacy(url, { method: "tasks/result", params: { taskId } })),
    answer(modern(url, { method: "subscriptions/listen", params: {
      notifications: { taskIds: [taskId] } } })),
  ];

  await sleep(500);
  reload();
  await Promise.all(waiting);
  await answer(legacy(url, { method: "tasks/cancel", params: { taskId } }));
}


export async function provoke({ url, reload }) {
  const capabilities = { _meta: meta(extended) };

  await ourMethods(`${url}/named`, legacy, {});
  await ourMethods(`${url}/named`, modern, capabilities);
  await wrongRequests(`${url}/mcp`);
  await roots(`${url}/mcp`);
  await reloaded(`${url}/mcp`, reload);
}
