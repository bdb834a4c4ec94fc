// nginx with the module, four processes, and what belongs to it, until stop():
// everything that they write goes into one directory.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, openSync, readFileSync, rmSync, writeFileSync }
  from "node:fs";
import { createServer, connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const here = import.meta.dirname;


// Below the range that the kernel takes ports of outgoing connections from.
async function freePort() {
  for (;;) {
    const port = 20000 + Math.floor(Math.random() * 12000);
    const server = createServer();
    const free = await new Promise((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}


function reachable(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => { socket.destroy(); resolve(true); });
    socket.once("error", () => resolve(false));
  });
}


// An nginx with this configuration, in whose text @NAME@ stands for a value,
// and programs beside it.
async function launch({ nginx, module, dir, file, values }) {
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });

  const port = await freePort();
  const all = {
    MODULE: module,
    PORT: String(port),

    // the default user, nobody, may not even enter the directory
    USER: process.getuid() === 0 ? "user root;" : "",
    ...values,
  };

  writeFileSync(`${dir}/nginx.conf`,
    readFileSync(`${here}/${file}`, "utf8")
      .replace(/@([A-Z]+)@/g, (_, name) => all[name]));

  const log = openSync(`${dir}/output.log`, "a");
  const started = [];

  const start = (command, args, env = {}) => {
    const child = spawn(command, args, { stdio: ["ignore", log, log],
                                         env: { ...process.env, ...env } });
    started.push(child);
    return child;
  };

  const stop = async () => {
    // nginx last: the worker gives back what it has
    for (const child of started.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 10000);
      await ended;
      clearTimeout(timer);
    }
  };

  // until it can be connected to
  const up = async (child, port) => {
    while (!await reachable(port)) {
      if (child.exitCode !== null) {
        await stop();
        throw new Error(`${child.spawnargs[0]} did not start:`
                        + ` see ${dir}/output.log`);
      }
      await sleep(50);
    }
  };

  const master = start(nginx, ["-e", "stderr", "-p", `${dir}/`,
                               "-c", `${dir}/nginx.conf`]);
  await up(master, port);

  const faults = () =>
    readFileSync(`${dir}/error.log`, "utf8").split("\n")
      .filter((line) => /\[(alert|emerg|crit|error)\]/.test(line));

  const reload = () => master.kill("SIGHUP");

  return { url: `http://127.0.0.1:${port}`, dir, start, up, reload, stop,
           faults };
}


export async function startServer(how) {
  const server = await launch({ ...how, file: "nginx.conf",
                                values: { TOOLS: `${here}/tools.json` } });
  server.start(process.execPath,
               [`${here}/worker.mjs`, `${server.url}/worker`]);
  return server;
}


// The gateway, and the servers behind it; "plain" has the same servers behind
// nothing but nginx, "suite" is what the conformance suite meets behind
// nothing, "seen" says what one of our own was asked.
export async function startGateway(how) {
  const [plain, legacy, modern, everything, suite, gone, supergateway,
         stateless, mcpproxy, fastmcp, python] =
    await Promise.all(Array.from({ length: 11 }, freePort));

  // another nginx, with the queue, is one of the servers
  const queue = await startServer({ ...how, dir: `${how.dir}-queue` });

  const server = await launch({ ...how, file: "gateway.conf", values: {
    QUEUE: new URL(queue.url).port,
    PLAIN: String(plain), LEGACY: String(legacy), MODERN: String(modern),
    EVERYTHING: String(everything), SUITE: String(suite),
    GONE: String(gone),
    SUPERGATEWAY: String(supergateway), STATELESS: String(stateless),
    MCPPROXY: String(mcpproxy), FASTMCP: String(fastmcp),
    PYTHON: String(python) } });

  const node = (port, args, env) =>
    server.up(server.start(process.execPath, args, env), port);

  await Promise.all([
    node(legacy, [`${here}/upstream-legacy.mjs`, String(legacy)]),
    node(modern, [`${here}/upstream-modern.mjs`, String(modern)]),
    node(suite, [`${here}/upstream-suite.mjs`, String(suite)]),
    node(everything, [`${here}/node_modules/@modelcontextprotocol/`
                      + "server-everything/dist/index.js", "streamableHttp"],
         { PORT: String(everything) }),
  ]);

  const ports = { legacy, modern, supergateway, stateless, mcpproxy, fastmcp,
                  python };
  const seen = async (name) =>
    (await fetch(`http://127.0.0.1:${ports[name]}/seen`)).json();

  const stop = async () => {
    await server.stop();
    await queue.stop();
  };

  return { ...server, plain: `http://127.0.0.1:${plain}`,
           suite: `http://127.0.0.1:${suite}`, seen, ports, queue, stop,

           // nobody listens there, and a session ends during a call: nginx
           // rightly says so
           faults: () => [...queue.faults(), ...server.faults()].filter((line) =>
             !line.includes(`127.0.0.1:${gone}/`)
             && !/failed: upstream_(unreachable|closed), task/.test(line)) };
}
