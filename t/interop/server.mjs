// nginx with the module, four processes, and the worker of the tools, until
// stop(): everything that they write goes into one directory.

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


export async function startServer({ nginx, module, dir }) {
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });

  const port = await freePort();
  const values = {
    MODULE: module,
    PORT: String(port),
    TOOLS: `${here}/tools.json`,

    // the default user, nobody, may not even enter the directory
    USER: process.getuid() === 0 ? "user root;" : "",
  };

  writeFileSync(`${dir}/nginx.conf`,
    readFileSync(`${here}/nginx.conf`, "utf8")
      .replace(/@([A-Z]+)@/g, (_, name) => values[name]));

  const log = openSync(`${dir}/output.log`, "a");
  const started = [];

  const start = (...command) => {
    const child = spawn(command[0], command.slice(1),
                        { stdio: ["ignore", log, log] });
    started.push(child);
    return child;
  };

  const stop = async () => {
    // the worker first: it gives back what it has
    for (const child of started.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 10000);
      await ended;
      clearTimeout(timer);
    }
  };

  const master = start(nginx, "-e", "stderr", "-p", `${dir}/`,
                       "-c", `${dir}/nginx.conf`);

  while (!await reachable(port)) {
    if (master.exitCode !== null)
      throw new Error(`nginx did not start: see ${dir}/output.log`);
    await sleep(50);
  }

  const url = `http://127.0.0.1:${port}`;
  start(process.execPath, `${here}/worker.mjs`, `${url}/worker`);

  const faults = () =>
    readFileSync(`${dir}/error.log`, "utf8").split("\n")
      .filter((line) => /\[(alert|emerg|crit|error)\]/.test(line));

  const reload = () => master.kill("SIGHUP");

  return { url, dir, reload, stop, faults };
}
