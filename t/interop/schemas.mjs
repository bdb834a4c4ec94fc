// Every message that the module sent to the clients of this run (see
// record.mjs), against the schemas that the protocol's packages export: a line
// for each kind of message, and one message that does not fit fails the run, or
// one that has a key twice.

import { readFileSync } from "node:fs";
import * as v1 from "@modelcontextprotocol/sdk/types.js";
import * as v2 from "@modelcontextprotocol/core";
import * as tasks from "@modelcontextprotocol/ext-tasks/core/v2";
import { duplicateKey } from "./keys.mjs";
import { provoke } from "./provoke.mjs";
import * as report from "./report.mjs";

const version = "io.modelcontextprotocol/protocolVersion";


// a result of the modern era says of which type it is
const typed = (schema, type = "complete") => ({
  safeParse(value) {
    if (value?.resultType !== type)
      return { success: false, error: new Error(`resultType is not ${type}`) };
    return schema.safeParse(value);
  },
});


// the kinds of answers to a call besides its result
const asTask = "tools/call as a task";
const asks = "tools/call that asks";

// By era and method: the schema of a result, and that of a notification or a
// question as a whole.  Each must be seen, and no other errors.
const schemas = {
  legacy: {
    results: {
      "initialize": v1.InitializeResultSchema,
      "ping": v1.EmptyResultSchema,
      "tools/list": v1.ListToolsResultSchema,
      "tools/call": v1.CallToolResultSchema,
      [asTask]: v1.CreateTaskResultSchema,
      "tasks/get": v1.GetTaskResultSchema,
      "tasks/result": v1.CallToolResultSchema,
      "tasks/list": v1.ListTasksResultSchema,
      "tasks/cancel": v1.CancelTaskResultSchema,
      "tasks/create": v1.CreateTaskResultSchema,
      "tasks/update": v1.ResultSchema,
      "tasks/progress": v1.ResultSchema,
    },
    messages: {
      "notifications/progress": v1.ProgressNotificationSchema,
      "notifications/tasks/status": v1.TaskStatusNotificationSchema,
      "elicitation/create": v1.ElicitRequestSchema,
      "sampling/createMessage": v1.CreateMessageRequestSchema,
      "roots/list": v1.ListRootsRequestSchema,
    },
    errors: [-32700, -32600, -32601, -32602, -32603, -32001, -31012, -31013],
    envelope: v1.JSONRPCMessageSchema,
  },

  modern: {
    results: {
      "server/discover": typed(v2.DiscoverResultSchema),
      "tools/list": typed(v2.ListToolsResultSchema),
      "tools/call": typed(tasks.CallToolResultV2Schema),
      [asTask]: typed(tasks.CreateTaskResultV2Schema, "task"),
      "tasks/get": typed(tasks.GetTaskResultV2Schema),
      "tasks/update": typed(tasks.UpdateTaskResultV2Schema),
      "tasks/cancel": typed(tasks.CancelTaskResultV2Schema),
      "tasks/create": typed(tasks.CreateTaskResultV2Schema, "task"),
      "tasks/list": typed(v2.ResultSchema),
      "tasks/progress": typed(v2.ResultSchema),
      "subscriptions/listen": typed(v2.SubscriptionsListenResultSchema),
      [asks]: typed(tasks.InputRequiredCallToolResultV2Schema,
                    "input_required"),
    },
    messages: {
      "notifications/progress": v2.ProgressNotificationSchema,
      "notifications/tasks": tasks.TaskStatusNotificationV2Schema,
      "notifications/subscriptions/acknowledged":
        v2.SubscriptionsAcknowledgedNotificationSchema,
    },
    errors: [-32600, -32601, -32602, -32603, -32020, -32021, -32022],
    envelope: v2.JSONRPCMessageSchema,
  },
};


const era = ({ headers, request }) =>
  request?.params?._meta?.[version] !== undefined
  || headers["mcp-protocol-version"] === "2026-07-28" ? "modern" : "legacy";


// its kind, and the schemas that it must fit, with what is held against them
function classify(record) {
  const { request, message } = record;
  const { results, messages, errors, envelope } = schemas[era(record)];
  const fits = [[envelope, message]];

  // the schema of a task leaves open what its result is: here, a tool's
  const task = message.params ?? message.result;
  if (era(record) === "modern" && task?.status === "completed")
    fits.push([typed(tasks.CallToolResultV2Schema), task.result]);

  if (message.method !== undefined) {
    fits.push([messages[message.method], message]);
    return { kind: message.method, fits };
  }

  if (message.error) {
    if (!errors.includes(message.error.code)) fits.push([undefined, message]);
    return { kind: `error ${message.error.code}`, fits };
  }

  // a GET that resumes the stream of a call: the call was another request
  if (!request) return { kind: "a resumed response", fits };

  const { task: made, taskId, resultType } = message.result;
  const kind = request.method !== "tools/call" ? request.method
    : made ?? taskId ? asTask
    : resultType === "input_required" ? asks : request.method;

  fits.push([results[kind], message.result]);
  return { kind, fits };
}


function complaint({ fits }) {
  for (const [schema, value] of fits) {
    if (!schema) return `unexpected: ${JSON.stringify(value)}`;
    const { success, error } = schema.safeParse(value);
    if (!success) return `${error.message} in ${JSON.stringify(value)}`;
  }
}


export async function run({ record, ...context }) {
  await provoke(context);

  report.heading("schemas of all messages");

  // the check of keys can fail
  const twice = ['{"a":1,"b":[{"c\\"":"\\\\","\\u0063\\"":{}}]}',
                 '[{"a":1, "a" :2}]'];
  const once = ['{"a":{"a":"a"},"b":["a","a",":"]}',
                '{"c":"{\\"a\\":1,\\"a\\":2}"}', "7"];
  if (twice.every((text) => duplicateKey(text) !== undefined)
      && once.every((text) => duplicateKey(text) === undefined))
    report.ok("duplicate keys are found");
  else
    report.failed("duplicate keys are found", "they are not");

  const kinds = {};

  for (const [name, { results, messages, errors }] of Object.entries(schemas))
    for (const kind of [Object.keys(results), Object.keys(messages),
                        errors.map((code) => `error ${code}`)].flat())
      kinds[`${name}: ${kind}`] = { seen: 0 };

  for (const line of readFileSync(record, "utf8").split("\n")) {
    if (!line) continue;
    const it = JSON.parse(line);
    const found = it.message ? classify(it)
                             : { kind: "not JSON", fits: [[undefined, it]] };
    const kind = kinds[`${era(it)}: ${found.kind}`] ??= { seen: 0 };
    kind.seen++;
    kind.why ??= it.duplicate === undefined ? complaint(found)
      : `duplicate key "${it.duplicate}" in ${JSON.stringify(it.message)}`;
  }

  for (const [name, { seen, why }] of Object.entries(kinds)) {
    if (why) report.failed(name, why);
    else if (!seen) report.failed(name, "there was no such message");
    else report.ok(name, `${seen} of them`);
  }
}
