// What the upstream servers of both generations have in common: tools that know
// nothing of tasks, and a record of what was asked of them, at /seen.

import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/v4";

const requests = [];
const cancelled = [];

export const text = (said, more) =>
  ({ content: [{ type: "text", text: said }], ...more });

const times = { ms: z.number().optional(), steps: z.number().optional(),
                label: z.string().optional() };
const label = { label: z.string().optional() };


// Works for so many milliseconds, tells of every step, and gives up as soon as
// it is not wanted any more.
async function work({ ms = 500, steps = 4, label = "" },
                    { signal, progress, log }) {
  try {
    for (let step = 1; step <= steps; step++) {
      await sleep(ms / steps, undefined, { signal });
      await progress?.({ progress: step, total: steps,
                         message: `step ${step}` });
      if (step === 1) await log(`${label} has begun`);
    }
  } catch (e) {
    if (signal.aborted)
      cancelled.push({ label, reason: String(signal.reason) });
    throw e;
  }
  return text(`worked ${ms} ms`, { _meta: { label } });
}

const echo = async ({ text: said = "" }) => text(said);


// Each with its input, and what it does: that gets the arguments and an object
// with signal, progress() and log().
export const tools = {
  echo: { input: { text: z.string().optional() }, does: echo },
  slow: { input: times, does: work },

  // the same, which gateway.conf treats in other ways
  later: { input: times, does: work },
  must: { input: { text: z.string().optional() }, does: echo },
  never: { input: { text: z.string().optional() }, does: echo },
  never_too: { input: { text: z.string().optional() }, does: echo },

  structured: {
    input: { city: z.string().optional() },
    output: { city: z.string(), degrees: z.number() },
    does: async ({ city = "Rome" }) => {
      const structuredContent = { city, degrees: 21.5 };
      return text(JSON.stringify(structuredContent), { structuredContent });
    },
  },

  // bytes of it, and some that have to be escaped
  large: {
    input: { kilobytes: z.number() },
    does: async ({ kilobytes }) => text("\u00e9\n\"x\u2028".padEnd(16, ".")
      .repeat(kilobytes * 64)),
  },

  fail: { input: label, does: async () => text("it broke", { isError: true }) },
};


export const question = (label) => ({
  mode: "form",
  message: `What is your name, for ${label}?`,
  requestedSchema: {
    type: "object",
    properties: { name: { type: "string", minLength: 1 } },
    required: ["name"],
  },
});

export const prompt = (label) => ({
  messages: [{ role: "user", content: { type: "text", text: label } }],
  maxTokens: 100,
});

export const asking = { label: z.string().optional(),
                        twice: z.boolean().optional() };

// where servers ask by requests of their own: on the session's stream, not on
// that of the call; and for how long they wait for the answer
export const askingAside = { ...asking, aside: z.boolean().optional(),
                             patience: z.number().optional() };


// what was sent on each stream, by the id of the event
export function eventStore() {
  const events = new Map();
  return {
    async storeEvent(stream, message) {
      const id = `${stream}_${events.size}`;
      events.set(id, { stream, message });
      return id;
    },
    async getStreamIdForEventId(id) {
      return events.get(id)?.stream;
    },
    async replayEventsAfter(last, { send }) {
      const { stream } = events.get(last);
      let after = false;
      for (const [id, event] of events) {
        if (after && event.stream === stream) await send(id, event.message);
        after ||= id === last;
      }
      return stream;
    },
  };
}


// all requests that came past the checks of the SDK's application
export function watch(app) {
  app.get("/seen", (req, res) => res.json({ requests, cancelled }));

  app.use((req, res, next) => {
    const { method, path, headers, body } = req;
    const it = { method, path, headers, body };
    requests.push(it);
    res.on("close", () => {
      it.status = res.statusCode;
      it.cut = !res.writableFinished;
    });
    next();
  });
}


export function listen(app) {
  const port = Number(process.argv[2]);
  const server = app.listen(port, "127.0.0.1");
  server.on("error", (e) => { throw e; });

  for (const signal of ["SIGTERM", "SIGINT"])
    process.on(signal, () => process.exit());
}
