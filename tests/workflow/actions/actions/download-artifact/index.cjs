const { execFileSync } = require("node:child_process");
const { cpSync } = require("node:fs");
const { join } = require("node:path");

const { ARTIFACTS, BETWEEN, INPUT_NAME, INPUT_PATH, RUNNER_TOOL_CACHE } = process.env;
const folder = join(RUNNER_TOOL_CACHE, ARTIFACTS, INPUT_NAME);
cpSync(folder, INPUT_PATH || ".", { recursive: true, verbatimSymlinks: true });
if (BETWEEN) execFileSync("bash", ["-ec", BETWEEN], { stdio: "inherit" });
