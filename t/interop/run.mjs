// Everything: node run.mjs NGINX MODULE DIR
//
// ONLY=conformance,inspector runs just these parts; "schemas" needs the others.

import { startServer } from "./server.mjs";
import * as report from "./report.mjs";

// the last one looks at what all the others were told
const parts = ["conformance", "subscriptions", "sdk-legacy", "sdk-modern",
               "inspector", "schemas"];

const [nginx, module, dir] = process.argv.slice(2);
const only = process.env.ONLY?.split(",") ?? parts;
const begin = Date.now();

const server = await startServer({ nginx, module, dir });

let ended = false;

for (const signal of ["SIGINT", "SIGTERM"])
  process.on(signal, async () => {
    if (ended) return;
    ended = true;
    await server.stop();
    process.exit(1);
  });

try {
  const record = process.env.MCP_TASKS_RECORD = `${dir}/messages`;
  const env = { ...process.env,
                NODE_OPTIONS: `--import ${import.meta.dirname}/record.mjs` };
  await import("./record.mjs");

  for (const part of parts.filter((name) => only.includes(name))) {
    const { run } = await import(`./${part}.mjs`);
    await run({ ...server, env, record });
  }

  report.heading("nginx");
  await report.test("nothing went wrong in nginx", async () => {
    if (server.faults().length) throw new Error(server.faults().join("\n"));
  });
} finally {
  ended = true;
  await server.stop();
}

process.exit(report.total((Date.now() - begin) / 1000) ? 0 : 1);
