// SPDX-License-Identifier: GPL-3.0-or-later
// A third-party identity provider, run for the tests: `node provider.mjs DIRECTORY-OF-THE-PACKAGE`.
// It prints its URL, then a line of JSON for each token request. A line of JSON on its standard input
// ({"status": ..., "body": ...}) sets its answer to the next one.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { OAuth2Server } = await import(pathToFileURL(`${process.argv[2]}/dist/index.mjs`));
const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const next = [];
const server = new OAuth2Server();
await server.issuer.keys.generate("RS256");
server.service.on("beforeResponse", (response, request) => {
  const { status, body } = next.shift() ?? {};
  response.statusCode = status ?? response.statusCode;
  response.body = body ?? response.body;
  print({ authorization: request.headers.authorization ?? null, form: request.body, answer: response.body });
});
await server.start(0, "127.0.0.1");
print({ url: `http://127.0.0.1:${server.address().port}` });
createInterface({ input: process.stdin })
  .on("line", (line) => { next.push(JSON.parse(line)); print("understood"); })
  .on("close", () => process.exit());
