// Does the work of the tools in tools.json, many at a time:
//
//     node worker.mjs http://127.0.0.1:8080/worker
//
// What a tool has to do is said by the conformance suite; the tools without
// "test_" in their name that it does not know are for our own tests.

import { ask, rpc, serve, sleep, text } from "../../examples/worker.mjs";

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAA"
            + "AAAgABSK+kcQAAAABJRU5ErkJggg==";
const silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const image = { type: "image", data: pixel, mimeType: "image/png" };
const audio = { type: "audio", data: silence, mimeType: "audio/wav" };
const resource = (name) => ({
  type: "resource",
  resource: { uri: `test://${name}`, mimeType: "text/plain", text: name },
});

const object = (properties) =>
  ({ type: "object", properties, required: Object.keys(properties) });

const elicit = (message, properties) => ({
  method: "elicitation/create",
  params: { mode: "form", message, requestedSchema: object(properties) },
});

const sample = (prompt) => ({
  method: "sampling/createMessage",
  params: {
    messages: [{ role: "user", content: { type: "text", text: prompt } }],
    maxTokens: 100,
  },
});

const roots = { method: "roots/list", params: {} };

const string = { type: "string" };
const boolean = { type: "boolean" };
const said = (answer) => text(`The answer: ${JSON.stringify(answer)}`);

// Long work looks often whether it is still wanted.
async function work(held, seconds) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end;) {
    await sleep(Math.min(0.5, (end - Date.now()) / 1000));
    await rpc("worker/heartbeat", held);
  }
}

const capabilities = (task) =>
  task._meta?.["io.modelcontextprotocol/clientCapabilities"] ?? {};

// All answers, asking only for those that are not there: a call may bring some
// along, and a later attempt finds what an earlier one got.
async function answers(held, task, questions) {
  const had = task.inputResponses ?? {};
  const open = Object.entries(questions).filter(([key]) => !(key in had));
  return { ...had,
           ...(open.length && await ask(held, Object.fromEntries(open))) };
}

// a tool that asks, and repeats the answers
const asks = (questions) => async (held, args, task) =>
  said(await answers(held, task, questions(args, task)));

const progress = async (held, ...steps) => {
  for (const step of steps) {
    await rpc("worker/progress", { ...held, progress: step, total: 100 });
    await sleep(0.05);
  }
};

const protocolError = (code, message) => async (held) => {
  await rpc("worker/fail", { ...held, error: { code, message } });
};

const forTasks = {
  greet: async (held, { name = "World" }) => text(`Hello, ${name}!`),

  async slow_compute(held, { seconds = 1, label = "" }) {
    await work(held, seconds);
    return text(`computed ${label} in ${seconds} s`);
  },

  async failing_job(held) {
    await work(held, 1);
    return text("this job always fails", { isError: true });
  },

  protocol_error_job: protocolError(-32603, "this job breaks the protocol"),

  confirm_delete: asks(({ filename }) => ({
    confirm: elicit(`Delete ${filename}?`, { confirm: boolean }),
  })),

  multi_input: asks(() => ({
    first: elicit("What is your name?", { name: string }),
    second: elicit("What is your colour?", { color: string }),
  })),

  async test_tool_with_task(held, args, task) {
    const { user_name } = await answers(held, task, {
      user_name: elicit("What is your name?", { name: string }),
    });
    return text(`Hello, ${user_name.content?.name}!`);
  },
};

const ours = {
  brief: async () => text("done"),

  async count(held, { to, delay = 0.1 }) {
    for (let i = 1; i <= to; i++) {
      await work(held, delay);
      await rpc("worker/progress",
                { ...held, progress: i, total: to, message: `at ${i}` });
    }
    return text(`counted to ${to}`);
  },

  must_count: (held, args) => ours.count(held, args),

  ask_model: asks(({ prompt = "?" }) => ({ answer: sample(prompt) })),

  async structured(held, { city = "Rome" }) {
    const structuredContent = { city, degrees: 21.5 };
    return text(JSON.stringify(structuredContent), { structuredContent });
  },

  routed: async (held, { region }) => text(`routed to ${region}`),
};

const forTools = {
  test_simple_text: async () => text("A simple text."),
  test_image_content: async () => ({ content: [image] }),
  test_audio_content: async () => ({ content: [audio] }),
  test_embedded_resource: async () => ({ content: [resource("embedded")] }),
  test_multiple_content_types: async () =>
    ({ content: [{ type: "text", text: "Several:" }, image,
                 resource("mixed")] }),
  test_error_handling: async () => text("This never works", { isError: true }),
  test_tool_with_logging: async () => text("nothing was logged"),
  test_logging_tool: async () => text("nothing was logged"),
  json_schema_2020_12_tool: async (held, args) => said(args),

  async test_tool_with_progress(held) {
    await progress(held, 0, 50, 100);
    return text("all of it");
  },

  async test_reconnection(held) {
    await work(held, 1);
    return text("still here");
  },

  test_sampling: asks(({ prompt }) => ({ answer: sample(prompt) })),
  test_missing_capability: asks(() => ({ answer: sample("Hello") })),

  test_elicitation: asks(({ message }) => ({
    user: elicit(message, { username: string, email: string }),
  })),

  async test_streaming_elicitation(held, args, task) {
    await progress(held, 50);
    return forTools.test_elicitation(held, { message: "Who?" }, task);
  },

  test_elicitation_sep1034_defaults: asks(() => ({
    form: elicit("Is this right?", {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"],
                default: "active" },
      verified: { type: "boolean", default: true },
    }),
  })),

  test_elicitation_sep1330_enums: asks(() => {
    const values = ["option1", "option2", "option3"];
    const titled = values.map((v, i) =>
      ({ const: `value${i + 1}`, title: `Choice ${i + 1}` }));

    return { form: elicit("Which?", {
      untitledSingle: { type: "string", enum: values },
      titledSingle: { type: "string", oneOf: titled },
      legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"],
                    enumNames: ["One", "Two", "Three"] },
      untitledMulti: { type: "array",
                       items: { type: "string", enum: values } },
      titledMulti: { type: "array", items: { anyOf: titled } },
    }) };
  }),
};

const forInput = {
  test_input_required_result_elicitation: asks(() => ({
    user_name: elicit("What is your name?", { name: string }),
  })),

  test_input_required_result_sampling: asks(() => ({
    capital_question: sample("What is the capital of France?"),
  })),

  test_input_required_result_list_roots: asks(() => ({
    client_roots: roots,
  })),

  test_input_required_result_request_state: async (held, args, task) => {
    const { confirm } = await answers(held, task, {
      confirm: elicit("Really?", { ok: boolean }),
    });
    return text(`state-ok ${JSON.stringify(confirm)}`);
  },

  test_input_required_result_multiple_inputs: asks(() => ({
    user_name: elicit("What is your name?", { name: string }),
    greeting: sample("Write a greeting"),
    client_roots: roots,
  })),

  async test_input_required_result_multi_round(held, args, task) {
    const { step1 } = await answers(held, task, {
      step1: elicit("What is your name?", { name: string }),
    });
    const { step2 } = await answers(held, task, {
      step2: elicit("What is your colour?", { color: string }),
    });
    return said({ step1, step2 });
  },

  test_input_required_result_tampered_state: asks(() => ({
    confirm: elicit("Really?", { ok: boolean }),
  })),

  test_input_required_result_capabilities: asks((args, task) => {
    const { elicitation, sampling } = capabilities(task);
    return {
      ...(elicitation && { user: elicit("Who?", { name: string }) }),
      ...(sampling && { model: sample("Who?") }),
    };
  }),
};

await serve({ ...forTasks, ...ours, ...forTools, ...forInput }, true);
