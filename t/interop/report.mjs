// One line for each scenario as it comes, and a total at the end.

import assert from "node:assert/strict";

const counts = { ok: 0, FAILED: 0, "not applicable": 0 };


function line(outcome, name, why) {
  counts[outcome]++;
  console.log(`${outcome.padEnd(14)}  ${name}${why ? `: ${why}` : ""}`);
}


export const heading = (what) => console.log(`\n== ${what}`);

export const ok = (name, remark) => line("ok", name, remark);
export const failed = (name, why) => line("FAILED", name, why);
export const notApplicable = (name, why) => line("not applicable", name, why);


async function within(seconds, body) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${seconds} s`)),
                       seconds * 1000);
  });

  try {
    await Promise.race([body(), late]);
  } finally {
    clearTimeout(timer);
  }
}


// a test of our own: a function that throws if it fails
export async function test(name, body, seconds = 30) {
  let error;
  await within(seconds, body).catch((e) => { error = e; });
  outcome(name, error);
}

function outcome(name, error) {
  if (!error) return ok(name);
  failed(name, error.message);
  console.log((error.stack ?? "").replace(/^/gm, "    "));
}


// Several at the same time, each a function that calls its argument as test();
// all of them may start programs, so they have more time.  What they have to say
// is printed under one heading, when all have ended.
export async function together(title, all) {
  const said = await Promise.all(all.map(async (one) => {
    const lines = [];
    await one(async (name, body, seconds = 120) => {
      let error;
      await within(seconds, body).catch((e) => { error = e; });
      lines.push([name, error]);
    });
    return lines;
  }));

  heading(title);
  for (const [name, error] of said.flat()) outcome(name, error);
}


// Asserts that there was progress: a client is shown the latest, not each.
export function increases(shown) {
  assert.ok(shown.length > 0);
  for (const [i, one] of shown.entries()) assert.ok(!i || one > shown[i - 1]);
}


// the total; whether nothing failed
export function total(seconds) {
  const said = Object.entries(counts).filter(([, n]) => n > 0)
    .map(([outcome, n]) => `${n} ${outcome}`);
  console.log(`\n${said.join(", ")}, in ${Math.round(seconds)} seconds`);
  return counts.FAILED === 0;
}
