// Clients that people use, each behind the same few functions:
//
//     const host = await hosts["ai-sdk"].connect(url, { dir, answer });
//     await host.names();                    the names of the tools
//     await host.call(name, args, options);  { text, isError, structured }
//     await host.close();
//
// "offers" is the version with which the client opens.  "asks" says whether it
// can show a question to its user, which answer() then does; "progresses"
// whether it shows progress, which then comes to options.onprogress.

import { readFileSync } from "node:fs";
import { createMCPClient, ElicitationRequestSchema } from "@ai-sdk/mcp";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport }
  from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const packages = `${import.meta.dirname}/node_modules`;

const outcome = ({ content, isError = false, structuredContent }) => ({
  text: content?.map(({ text }) => text).join(""), isError,
  structured: structuredContent,
});


// Vercel's AI SDK, whose tools a model calls by execute().
const aiSdk = (options) => async (url, { answer }) => {
  const client = await createMCPClient({
    transport: { type: "http", url },
    ...(answer && { capabilities: { elicitation: {} } }),
    ...options,
  });
  if (answer) client.onElicitationRequest(ElicitationRequestSchema, answer);
  const tools = await client.tools();
  let calls = 0;

  return {
    version: client.initializeResult.protocolVersion,
    names: async () => Object.keys(tools),
    call: async (name, args) => outcome(await tools[name].execute(args,
      { toolCallId: `call-${++calls}`, messages: [] })),
    close: () => client.close(),
  };
};


// LangChain, whose tools throw what a server calls an error.
async function langchain(url) {
  let onprogress;
  const client = new MultiServerMCPClient({
    mcpServers: { nginx: { transport: "http", url } },
    onProgress: (progress) => onprogress?.(progress),
  });
  const tools = await client.getTools();

  return {
    names: async () => tools.map(({ name }) => name),
    async call(name, args, options = {}) {
      ({ onprogress } = options);
      const tool = tools.find((one) => one.name === name);
      try {
        const said = await tool.invoke({ type: "tool_call", id: "1", name,
                                         args });
        return { text: [said.content].flat().map((c) => c.text ?? c).join(""),
                 isError: false,
                 structured: said.artifact?.structuredContent
                   ?? said.artifact?.[0]?.data };
      } catch (e) {
        return { text: e.message, isError: true };
      }
    },
    close: () => client.close(),
  };
}


// An MCP client of 2025-11-25 with a program that speaks MCP on its standard
// input and output, as desktop applications start them.
async function stdio(args, { dir, answer }) {
  const client = new Client({ name: "desktop", version: "1" },
    { capabilities: answer ? { elicitation: {} } : {} });
  if (answer) client.setRequestHandler(ElicitRequestSchema, answer);

  // it keeps files in the home directory: not in the user's
  const env = { PATH: process.env.PATH, HOME: dir,
                MCP_REMOTE_CONFIG_DIR: `${dir}/mcp-remote` };
  await client.connect(new StdioClientTransport(
    { command: process.execPath, args, env, stderr: "ignore" }));

  return {
    client,
    names: async () => (await client.listTools()).tools.map((t) => t.name),
    call: async (name, args, { onprogress } = {}) => outcome(
      await client.callTool({ name, arguments: args }, undefined,
                            { onprogress })),
    close: () => client.close(),
  };
}

const mcpRemote = (...options) => (url, how) =>
  stdio([`${packages}/mcp-remote/dist/proxy.js`, url, "--allow-http",
         "--transport", "http-only", ...options], how);

const supergateway = (url, how) =>
  stdio([`${packages}/supergateway/dist/index.js`, "--streamableHttp", url,
         "--logLevel", "none"], how);


export const hosts = {
  "ai-sdk": {
    title: "AI SDK", offers: "2026-07-28", asks: true,
    connect: aiSdk({}),
  },
  "ai-sdk-legacy": {
    title: "AI SDK without discovery", offers: "2025-11-25", asks: true,
    connect: aiSdk({ protocolVersionDiscovery: false }),
  },
  "langchain": {
    title: "LangChain", offers: "2025-11-25", progresses: true,
    connect: langchain,
  },
  "mcp-remote": {
    title: "mcp-remote", offers: "2025-11-25", asks: true, progresses: true,
    connect: mcpRemote(),
  },
  "mcp-remote-auto": {
    title: "mcp-remote --protocol auto", offers: "2026-07-28",
    progresses: true,
    connect: mcpRemote("--protocol", "auto"),
  },
  "supergateway": {
    title: "supergateway to stdio", offers: "2025-11-25",
    connect: supergateway,
  },
};


// the versions with which a client has opened, by the server's log; the client
// says who it is by "?as=" in its URL
export function opened(dir, as) {
  return readFileSync(`${dir}/opening.log`, "utf8").split("\n")
    .filter((line) => line).map((line) => JSON.parse(line))
    .filter((one) => one.as === as)
    .map(({ method, body }) => {
      const { params } = JSON.parse(body);
      return method === "initialize" ? params.protocolVersion
        : params._meta["io.modelcontextprotocol/protocolVersion"];
    });
}
