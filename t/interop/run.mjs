// Everything: node run.mjs NGINX MODULE DIR
//
// ONLY=conformance,inspector runs just these parts; "schemas" needs the others.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { startGateway, startServer } from "./server.mjs";
import * as report from "./report.mjs";

// the last one looks at what all the others were told
const parts = ["conformance", "subscriptions", "sdk-legacy", "sdk-modern",
               "inspector", "clients", "schemas"];

// these have a server of their own
const gateways = ["gateway-legacy", "gateway-modern", "gateway-everything",
                  "gateway-conformance"];

// and these run at the same time, with that server
const together = ["gateway-clients", "gateway-servers", "gateway-queue"];

const [nginx, module, dir] = process.argv.slice(2);
const only = process.env.ONLY?.split(",") ?? [...parts, ...gateways, ...together];
const begin = Date.now();

// Python's servers are fetched while the other parts run: the version, or why
// there is none
const python = only.includes("gateway-servers")
  ? promisify(execFile)(`${import.meta.dirname}/../../tools/python-mcp.sh`)
    .then(({ stdout }) => ({ version: stdout.trim().split("\n").at(-1) }),
          (e) => ({ missing: e.stderr?.trim().split("\n").at(-1)
                             || e.message }))
  : undefined;

const running = [];
let ended = false;

async function stop() {
  ended = true;
  for (const server of running.splice(0)) await server.stop();
}

for (const signal of ["SIGINT", "SIGTERM"])
  process.on(signal, async () => {
    if (ended) return;
    await stop();
    process.exit(1);
  });


// these parts, with the server that they need
async function run(names, atOnce, start, where) {
  const chosen = names.filter((name) => only.includes(name));
  const last = atOnce.filter((name) => only.includes(name));
  if (!chosen.length && !last.length) return;

  const server = await start({ nginx, module, dir: where });
  running.push(server);

  const record = process.env.MCP_TASKS_RECORD = `${where}/messages`;
  const env = { ...process.env,
                NODE_OPTIONS: `--import ${import.meta.dirname}/record.mjs` };
  await import("./record.mjs");

  const runPart = async (part) => {
    const { run } = await import(`./${part}.mjs`);
    await run({ ...server, env, record, python });
  };

  for (const part of chosen) await runPart(part);
  await Promise.all(last.map(runPart));

  report.heading("nginx");
  await report.test("nothing went wrong in nginx", async () => {
    if (server.faults().length) throw new Error(server.faults().join("\n"));
  });

  running.splice(running.indexOf(server), 1);
  await server.stop();
}

try {
  await run(parts, [], startServer, dir);
  await run(gateways, together, startGateway, `${dir}/gateway`);
} finally {
  await stop();
}

process.exit(report.total((Date.now() - begin) / 1000) ? 0 : 1);
