// Removes funding and deprecation notices from package-lock.json.
import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(file));
for (const locked of Object.values(lock.packages)) {
  delete locked.funding;
  delete locked.deprecated;
}
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
