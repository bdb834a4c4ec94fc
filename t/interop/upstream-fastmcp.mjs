// A server made with FastMCP, with sessions:
//
//     node upstream-fastmcp.mjs PORT

import { setTimeout as sleep } from "node:timers/promises";
import { FastMCP, UserError } from "fastmcp";
import * as z from "zod/v4";
import { question } from "./upstream.mjs";

const server = new FastMCP({ name: "upstream-fastmcp", version: "1.0.0" });

server.addTool({
  name: "echo", description: "Says it again.",
  parameters: z.object({ text: z.string() }),
  execute: async ({ text }) => text,
});

server.addTool({
  name: "slow", description: "Works for some time.",
  parameters: z.object({ ms: z.number(), steps: z.number() }),
  execute: async ({ ms, steps }, { reportProgress }) => {
    for (let step = 1; step <= steps; step++) {
      await sleep(ms / steps);
      await reportProgress({ progress: step, total: steps });
    }
    return `worked ${ms} ms`;
  },
});

server.addTool({
  name: "fail", description: "Fails.",
  parameters: z.object({}),
  execute: async () => { throw new UserError("it broke"); },
});

server.addTool({
  name: "ask", description: "Asks for a name.",
  parameters: z.object({ label: z.string() }),
  execute: async ({ label }, { elicit }) => {
    const { action, content } = await elicit(question(label));
    return `${action} ${content?.name}`;
  },
});

await server.start({ transportType: "httpStream",
                     httpStream: { port: Number(process.argv[2]),
                                   host: "127.0.0.1" } });
