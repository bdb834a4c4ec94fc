// An MCP server with everything that the conformance suite asks servers for, of
// both eras, which knows nothing of tasks:
//
//     node upstream-suite.mjs PORT
//
// Clients of 2025-11-25 have sessions, and streams that can be resumed.  Names,
// texts and questions are those that the suite's scenarios describe.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createMcpExpressApp } from "@modelcontextprotocol/express";
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest }
  from "@modelcontextprotocol/node";
import { acceptedContent, completable, createMcpHandler,
         createRequestStateCodec, fromJsonSchema, inputRequired,
         isInitializeRequest, isLegacyRequest, McpServer, ResourceTemplate,
         UrlElicitationRequiredError }
  from "@modelcontextprotocol/server";
import * as z from "zod/v4";
import { eventStore, listen, text, watch } from "./upstream.mjs";

const codec = createRequestStateCodec({ key: "s".repeat(32) });
const options = {
  capabilities: { logging: {}, tools: { listChanged: true },
                  prompts: { listChanged: true },
                  resources: { listChanged: true, subscribe: true } },
  requestState: { verify: codec.verify },
};

// a dot, and a sound of no length
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AA"
            + "AAMBAQDJ/pLvAAAAAElFTkSuQmCC";
const wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
const image = { type: "image", data: png, mimeType: "image/png" };
const resource = (uri, mimeType, said) =>
  ({ type: "resource", resource: { uri, mimeType, text: said } });

// what the triggers add and remove; the handler tells those who subscribed
const extra = { tool: false, prompt: false };
let notify;


const schema = (properties) =>
  ({ type: "object", properties, required: Object.keys(properties) });
const elicit = (message, properties) =>
  inputRequired.elicit({ mode: "form", message,
                         requestedSchema: schema(properties) });
const sample = (said, maxTokens) => inputRequired.createMessage({
  messages: [{ role: "user", content: { type: "text", text: said } }],
  maxTokens });
const string = { type: "string" };


// what a tool returns, whatever it is called with
const contents = {
  test_simple_text: text("This is a simple text response for testing."),
  test_image_content: { content: [image] },
  test_audio_content: { content: [{ type: "audio", data: wav,
                                    mimeType: "audio/wav" }] },
  test_embedded_resource: { content: [
    resource("test://embedded-resource", "text/plain",
             "This is an embedded resource content.")] },
  test_multiple_content_types: { content: [
    { type: "text", text: "Multiple content types test:" }, image,
    resource("test://mixed-content-resource", "application/json",
             JSON.stringify({ test: "data", value: 123 }))] },
  test_error_handling:
    text("This tool intentionally returns an error for testing",
         { isError: true }),
};


// while it works, on the stream of the call
function registerTelling(tool) {
  tool("test_tool_with_logging", {}, async (args, { log }) => {
    await log("info", "Tool execution started");
    await sleep(50);
    await log("info", "Tool processing data");
    await sleep(50);
    await log("info", "Tool execution completed");
    return text("logged");
  });

  tool("test_tool_with_progress", {}, async (args, { _meta, notify }) => {
    const progressToken = _meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progress) await sleep(50);
      if (progressToken !== undefined)
        await notify({ method: "notifications/progress",
                       params: { progressToken, progress, total: 100 } });
    }
    return text("made progress");
  });

  // 2026-07-28: logs only if the request says from which level on
  tool("test_logging_tool", {}, async (args, { log }) => {
    await log("info", "The tool logs");
    return text("logged, if it was wanted");
  });

  tool("test_reconnection", {}, async (args, mcpReq, http) => {
    http?.closeSSE?.();
    await sleep(100);
    return text("the client came back");
  });
}


// 2025-11-25: by requests to the client, on the stream of the call: the client
// may not have opened the other one yet
function registerAsking(tool) {
  const elicitInput = (params, { elicitInput, id }) =>
    elicitInput({ mode: "form", ...params }, { relatedRequestId: id });
  const done = ({ action, content }) => text("Elicitation completed: "
    + `action=${action}, content=${JSON.stringify(content)}`);
  const pick = (...values) =>
    values.map(([value, title]) => ({ const: value, title }));

  tool("test_sampling", { prompt: z.string() }, async ({ prompt }, mcpReq) => {
    const { content } = await mcpReq.requestSampling({ maxTokens: 100,
      messages: [{ role: "user", content: { type: "text", text: prompt } }] },
      { relatedRequestId: mcpReq.id });
    return text(`LLM response: ${content.text}`);
  });

  tool("test_elicitation", { message: z.string() },
    async ({ message }, mcpReq) => {
      const answer = await elicitInput({ message, requestedSchema: schema({
        username: { ...string, description: "User's response" },
        email: { ...string, description: "User's email address" } }) }, mcpReq);
      return text(`User response: ${JSON.stringify(answer)}`);
    });

  tool("test_elicitation_sep1034_defaults", {}, async (args, mcpReq) =>
    done(await elicitInput({ message: "Are these right?",
      requestedSchema: { type: "object", properties: {
        name: { ...string, default: "John Doe" },
        age: { type: "integer", default: 30 },
        score: { type: "number", default: 95.5 },
        status: { ...string, enum: ["active", "inactive", "pending"],
                  default: "active" },
        verified: { type: "boolean", default: true } } } }, mcpReq)));

  tool("test_elicitation_sep1330_enums", {}, async (args, mcpReq) =>
    done(await elicitInput({ message: "Which of these?",
      requestedSchema: { type: "object", properties: {
        untitledSingle: { ...string, enum: ["option1", "option2", "option3"] },
        titledSingle: { ...string,
          oneOf: pick(["value1", "First"], ["value2", "Second"]) },
        legacyEnum: { ...string, enum: ["opt1", "opt2", "opt3"],
                      enumNames: ["One", "Two", "Three"] },
        untitledMulti: { type: "array",
          items: { ...string, enum: ["option1", "option2", "option3"] } },
        titledMulti: { type: "array", items: {
          anyOf: pick(["value1", "First"], ["value2", "Second"]) } },
      } } }, mcpReq)));
}


// 2026-07-28: by results, in one round or in several
function registerRounds(tool) {
  const name = "test_input_required_result_";

  // a question for each key, and what is said when they are answered
  const round = (which, requests, says) =>
    tool(name + which, {}, (args, { inputResponses }) =>
      Object.keys(requests).every((key) => inputResponses?.[key])
        ? text(says(inputResponses)) : inputRequired({ inputRequests:
                                                       requests }));

  const who = elicit("What is your name?", { name: string });

  tool(`${name}elicitation`, {}, (args, { inputResponses }) => {
    const said = acceptedContent(inputResponses, "user_name")?.name;
    return said === undefined
      ? inputRequired({ inputRequests: { user_name: who } })
      : text(`Hello, ${said}!`);
  });

  tool("test_streaming_elicitation", {}, (args, { inputResponses }) =>
    inputResponses?.user_name ? text("Hello!")
      : inputRequired({ inputRequests: { user_name: who } }));

  round("sampling", { capital_question:
                        sample("What is the capital of France?", 100) },
        ({ capital_question: { content } }) => `It is ${content.text}`);

  round("list_roots", { client_roots: inputRequired.listRoots() },
        ({ client_roots: { roots } }) => roots.map(({ uri }) => uri).join());

  // the SDK refuses a client that has not declared what this needs
  tool("test_missing_capability", {}, (args, { inputResponses }) =>
    inputResponses?.any ? text("thanks")
      : inputRequired({ inputRequests: { any: sample("Anything?", 10) } }));

  tool(`${name}capabilities`, {}, (args, { envelope, inputResponses }) => {
    if (inputResponses) return text("thanks");
    const can = envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? {};
    return inputRequired({ inputRequests: {
      ...(can.elicitation && { name: who }),
      ...(can.sampling && { model: sample("Anything?", 10) }) } });
  });

  for (const which of ["request_state", "tampered_state"])
    tool(name + which, {}, async (args, { inputResponses, requestState }) =>
      requestState() && inputResponses?.confirm ? text("state-ok")
        : inputRequired({
            inputRequests: { confirm: elicit("Please confirm",
                                             { ok: { type: "boolean" } }) },
            requestState: await codec.mint({ which }) }));

  tool(`${name}multiple_inputs`, {}, async (args, { inputResponses }) => {
    const requests = { user_name: who, greeting: sample("Greet me", 50),
                       client_roots: inputRequired.listRoots() };
    return Object.keys(requests).every((key) => inputResponses?.[key])
      ? text("all three are answered")
      : inputRequired({ inputRequests: requests,
                        requestState: await codec.mint({ round: 1 }) });
  });

  tool(`${name}multi_round`, {}, async (args, mcpReq) => {
    const steps = [["step1", "Step 1: What is your name?", "name"],
                   ["step2", "Step 2: What is your favorite color?", "color"]];
    const had = mcpReq.requestState() ?? [];
    const step = steps[had.length];
    const answer = acceptedContent(mcpReq.inputResponses, step[0]);
    const answers = answer ? [...had, answer] : had;

    if (answers.length === steps.length) return text(JSON.stringify(answers));

    const [key, message, what] = steps[answers.length];
    return inputRequired({
      inputRequests: { [key]: elicit(message, { [what]: string }) },
      requestState: await codec.mint(answers) });
  });
}


function registerSchemas(server) {
  server.registerTool("json_schema_2020_12_tool",
    { description: "Has a schema with many keywords.",
      inputSchema: fromJsonSchema({
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        $defs: { address: { $anchor: "addressDef", type: "object",
                            properties: { street: string, city: string } } },
        properties: { name: string, address: { $ref: "#/$defs/address" },
                      contactMethod: { ...string, enum: ["phone", "email"] },
                      phone: string, email: string },
        allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
        if: { properties: { contactMethod: { const: "phone" } },
              required: ["contactMethod"] },
        then: { required: ["phone"] },
        else: { required: ["email"] },
        additionalProperties: false }) },
    () => text("valid"));

  server.registerTool("test_header_tool",
    { description: "Is routed by a header.",
      inputSchema: fromJsonSchema({ type: "object", properties: {
        region: { ...string, "x-mcp-header": "Region" } } }) },
    ({ region }) => text(`routed to ${region}`));
}


// what the scenarios for tasks call; nothing here knows of tasks
function registerForTasks(tool) {
  tool("greet", { name: z.string().optional() },
    ({ name = "World" }) => text(`Hello, ${name}!`));

  tool("slow_compute", { seconds: z.number().optional(),
                         label: z.string().optional() },
    async ({ seconds = 1, label = "" }, { signal }) => {
      await sleep(seconds * 1000, undefined, { signal });
      return text(`computed ${label} in ${seconds} s`);
    });

  tool("failing_job", {}, async () => {
    await sleep(1000);
    return text("this job always fails", { isError: true });
  });

  // which the SDK takes for a mistake, and answers with an error
  tool("protocol_error_job", {}, () => {
    throw new UrlElicitationRequiredError([]);
  });

  tool("confirm_delete", { filename: z.string().optional() },
    ({ filename }, { inputResponses }) => inputResponses?.confirm
      ? text(`The answer: ${JSON.stringify(inputResponses)}`)
      : inputRequired({ inputRequests: {
          confirm: elicit(`Delete ${filename}?`,
                          { confirm: { type: "boolean" } }) } }));

  // both at once, and again what is still missing
  tool("multi_input", {}, (args, { inputResponses: had = {} }) => {
    const all = {
      first: elicit("What is your name?", { name: string }),
      second: elicit("What is your colour?", { color: string }),
    };
    const open = Object.entries(all).filter(([key]) => !(key in had));
    return open.length
      ? inputRequired({ inputRequests: Object.fromEntries(open) })
      : text(`The answer: ${JSON.stringify(had)}`);
  });

  // at once: it is for "input=first" to make the second round a task
  tool("test_tool_with_task", {}, (args, { inputResponses }) => {
    const said = acceptedContent(inputResponses, "user_name")?.name;
    return said === undefined
      ? inputRequired({ inputRequests: {
          user_name: elicit("What is your name?", { name: string }) } })
      : text(`Hello, ${said}!`);
  });
}


function registerTriggers(tool) {
  tool("test_trigger_tool_change", {}, () => {
    extra.tool = !extra.tool;
    notify.toolsChanged();
    return text("the tools have changed");
  });

  tool("test_trigger_prompt_change", {}, () => {
    extra.prompt = !extra.prompt;
    notify.promptsChanged();
    return text("the prompts have changed");
  });

  if (extra.tool) tool("test_extra_tool", {}, () => text("extra"));
}


function registerResources(server) {
  const about = (description, mimeType) => ({ description, mimeType });

  server.registerResource("static text", "test://static-text",
    about("A text.", "text/plain"), ({ href }) => ({ contents: [{
      uri: href, mimeType: "text/plain",
      text: "This is the content of the static text resource." }] }));

  server.registerResource("static binary", "test://static-binary",
    about("An image.", "image/png"), ({ href }) => ({ contents: [{
      uri: href, mimeType: "image/png", blob: png }] }));

  server.registerResource("watched", "test://watched-resource",
    about("Can be subscribed to.", "text/plain"), ({ href }) => ({ contents: [{
      uri: href, mimeType: "text/plain", text: "unchanged" }] }));

  server.registerResource("template",
    new ResourceTemplate("test://template/{id}/data", { list: undefined }),
    about("Data of an id.", "application/json"),
    ({ href }, { id }) => ({ contents: [{
      uri: href, mimeType: "application/json",
      text: JSON.stringify({ id, templateTest: true,
                             data: `Data for ID: ${id}` }) }] }));
}


function registerPrompts(server) {
  const user = (...contents) =>
    ({ messages: contents.map((content) => ({ role: "user", content })) });
  const says = (said) => ({ type: "text", text: said });

  server.registerPrompt("test_simple_prompt", { description: "Says a text." },
    () => user(says("This is a simple prompt for testing.")));

  server.registerPrompt("test_prompt_with_arguments",
    { description: "Repeats its arguments.", argsSchema: z.object({
        arg1: completable(z.string(), (value) =>
          ["paris", "park", "party"].filter((it) => it.startsWith(value))),
        arg2: z.string() }) },
    ({ arg1, arg2 }) =>
      user(says(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)));

  server.registerPrompt("test_prompt_with_embedded_resource",
    { description: "Embeds a resource.",
      argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri }) => user(
      resource(resourceUri, "text/plain",
               "Embedded resource content for testing."),
      says("Please process the embedded resource above.")));

  server.registerPrompt("test_prompt_with_image",
    { description: "Shows an image." },
    () => user(image, says("Please analyze the image above.")));

  server.registerPrompt("test_input_required_result_prompt",
    { description: "Asks for what it is about." }, ({ mcpReq }) => {
      const about = acceptedContent(mcpReq.inputResponses, "user_context");
      return about ? user(says(`It is about ${about.context}`))
        : inputRequired({ inputRequests: { user_context:
            elicit("What context should the prompt use?",
                   { context: string }) } });
    });

  if (extra.prompt)
    server.registerPrompt("test_extra_prompt", { description: "Extra." },
      () => user(says("extra")));
}


function create() {
  const server = new McpServer({ name: "upstream-suite", version: "1" },
                               options);
  const tool = (name, shape, does) =>
    server.registerTool(name, { description: `The tool ${name}.`,
                                inputSchema: z.object(shape) },
      async (args, { mcpReq, http }) => does(args, mcpReq, http));

  for (const [name, result] of Object.entries(contents))
    tool(name, {}, () => result);

  registerTelling(tool);
  registerAsking(tool);
  registerRounds(tool);
  registerSchemas(server);
  registerForTasks(tool);
  registerTriggers(tool);
  registerResources(server);
  registerPrompts(server);

  // 2025-11-25: nothing ever changes, so nobody has to be told
  server.server.setRequestHandler("resources/subscribe", () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", () => ({}));

  return server;
}


const app = createMcpExpressApp();
watch(app);

const modern = createMcpHandler(create, { legacy: "reject" });
notify = modern.notify;
const serveModern = toNodeHandler(modern);
const sessions = new Map();


async function serveLegacy(req, res) {
  const id = req.headers["mcp-session-id"];
  let transport = sessions.get(id);

  if (!transport && !(id === undefined && isInitializeRequest(req.body)))
    return res.status(id === undefined ? 400 : 404).json({ jsonrpc: "2.0",
      id: null, error: { code: -32001, message: "Session not found" } });

  if (!transport) {
    transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID, eventStore: eventStore(),
      retryInterval: 100,
      onsessioninitialized: (made) => { sessions.set(made, transport); },
    });
    transport.onclose = () => sessions.delete(transport.sessionId);
    await create().connect(transport);
  }

  await transport.handleRequest(req, res, req.body);
}

app.all("/mcp", async (req, res) => {
  const legacy = await isLegacyRequest(await toWebRequest(req, req.body));
  return legacy ? serveLegacy(req, res) : serveModern(req, res, req.body);
});

listen(app);
