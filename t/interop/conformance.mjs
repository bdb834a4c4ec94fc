// Runs the conformance suite and compares what it says with scenarios.json,
// which has lists for the module itself, for the gateway, and for the server
// behind the gateway:
//
// - "required": the suite has nothing to complain about, and skips nothing;
// - "inPart": all of its checks pass but those that are listed, with a reason
//   why they do not apply;
// - "notApplicable": it is about something that the module does not serve.
//
// What is listed as failing must fail, or the list is wrong; and every scenario
// that the suite has must be in the list.

import { execFile } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { promisify } from "node:util";
import * as report from "./report.mjs";

const here = import.meta.dirname;
const suite = `${here}/node_modules/@modelcontextprotocol/conformance/dist/`
            + "index.js";
const { gateway, upstream, ...module } =
  JSON.parse(readFileSync(`${here}/scenarios.json`, "utf8"));
export { gateway, upstream };

// one that hangs is cut by its own timeout, this is for the suite as a whole
const timeout = 120000;

// The suite writes this check for every scenario, whatever it is about: no
// message may break the schema, even where nothing else applies.
const schema = "wire-schema-valid";


async function conformance(env, ...args) {
  try {
    const options = { timeout, env, maxBuffer: 64 << 20 };
    const { stdout } = await promisify(execFile)(process.execPath,
                                                 [suite, ...args], options);
    return stdout;
  } catch (e) {
    // it exits with 1 if a check fails: we look into what it has written
    if (e.code !== 1) throw e;
    return e.stdout;
  }
}


async function names(env, version) {
  const args = version === "extension" ? [] : ["--spec-version", version];
  const lines = await conformance(env, "list", "--server", ...args);
  return lines.split("\n").map((line) => /^ *- (\S+) \[(.*)\]/.exec(line))
    .filter((m) => m && m[2].split(",").includes(version)).map((m) => m[1]);
}


// what the suite wrote for each scenario: DIR/server-NAME-TIME/checks.json
function results(dir) {
  const found = {};
  for (const entry of readdirSync(dir)) {
    const name = /^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(entry)[1];
    found[name] = JSON.parse(readFileSync(`${dir}/${entry}/checks.json`));
  }
  return found;
}


const complains = (check) => /^(FAILURE|WARNING)$/.test(check.status);
const passes = (check) => check.status === "SUCCESS" && check.id !== schema;
const skipped = (check) => check.status === "SKIPPED";
const complaint = (checks) => checks
  .filter((check) => complains(check) || skipped(check))
  .map((c) => `${c.id}: ${c.errorMessage ?? c.status}`).join("; ");


function judge(name, list, checks, title) {
  if (!checks) return report.failed(title, "the suite did not run it");

  const broken = checks.filter((c) => c.id === schema && complains(c));
  if (broken.length) return report.failed(title, complaint(broken));

  const good = !checks.some(complains) && !checks.some(skipped)
    && checks.some(passes);

  if (list.required.includes(name)) {
    const why = complaint(checks) || "the suite checked nothing";
    return good ? report.ok(title) : report.failed(title, why);
  }

  if (name in list.inPart) {
    const excused = list.inPart[name];
    const other = checks.filter((c) => !(c.id in excused));
    const stale = Object.keys(excused).filter((id) =>
      !checks.some((c) => c.id === id && !passes(c)));

    if (other.some(complains) || other.some(skipped) || !other.some(passes))
      return report.failed(title, complaint(other));
    if (stale.length)
      return report.failed(title, `passes, so do not excuse it: ${stale}`);

    report.ok(title, "but for what follows");
    for (const [id, why] of Object.entries(excused))
      report.notApplicable(`${title}, ${id}`, why);
    return;
  }

  if (!(name in list.notApplicable))
    return report.failed(title, "not in scenarios.json");
  if (good) return report.failed(title, "passes, and is listed as failing");
  report.notApplicable(title, list.notApplicable[name]);
}


// Scenarios of extensions are not on the suite's timeline: each has to be asked
// for, and as they mostly wait, three at a time.
async function eachOf(names, env, args) {
  const rest = [...names];
  await Promise.all([1, 2, 3].map(async () => {
    for (let name; (name = rest.shift());)
      await conformance(env, ...args, "--scenario", name);
  }));
}


// One revision, or the extensions, at one endpoint: what the suite prints is
// compared with the list.
export async function compare({ url, env, out, version, list, where = "" }) {
  const what = version + (where && `, ${where}`);
  const title = (name) => `${name} (${what})`;
  const all = await names(env, version);
  const args = ["server", "--url", url, "-o", out];

  if (version === "extension")
    await eachOf(all, env, args);
  else
    await conformance(env, ...args, "--suite", "all",
                      "--spec-version", version);

  report.heading(`conformance suite, ${what}`);

  const found = results(out);
  for (const name of all) judge(name, list, found[name], title(name));

  for (const name of [list.required, Object.keys(list.inPart),
                      Object.keys(list.notApplicable)].flat())
    if (!all.includes(name))
      report.failed(title(name), "the suite has no such scenario");
}


export async function run({ url, dir, env }) {
  for (const [version, list] of Object.entries(module))
    await compare({ url: `${url}/mcp`, env, version, list,
                    out: `${dir}/conformance-${version}` });
}
