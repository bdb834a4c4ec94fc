// The conformance suite's scenarios for tasks, against the gateway in front of
// a server that knows nothing of them.

import { tasksOnly } from "./conformance.mjs";
import * as report from "./report.mjs";


export async function run({ url, dir, env }) {
  report.heading("conformance suite, tasks, through the gateway");
  await tasksOnly({ url: `${url}/modern/conformance`, env,
                    out: `${dir}/conformance`, where: "gateway" });
}
