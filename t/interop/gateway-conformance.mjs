// The whole conformance suite, against a server that has all that it asks for
// but tasks: without nginx, and through the gateway.  Only for tasks may the
// results differ.

import { compare, gateway, upstream } from "./conformance.mjs";


export async function run({ url, suite, dir, env }) {
  const places = [["upstream", suite, { ...gateway, ...upstream }],
                  ["gateway", `${url}/suite`, gateway]];

  const at = (version) => places.map(([where, from, lists]) => () =>
    compare({ url: `${from}/mcp`, env, version, list: lists[version], where,
              out: `${dir}/conformance-${where}-${version}` }));

  for (const version of Object.keys(gateway)) {
    // some scenarios of a revision give a server but half a second; those of
    // extensions mostly wait
    if (version === "extension")
      await Promise.all(at(version).map((run) => run()));
    else
      for (const run of at(version)) await run();
  }
}
