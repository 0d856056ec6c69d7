const { cpSync, rmSync, statSync } = require("node:fs");
const { basename, join } = require("node:path");

const { ARTIFACTS, INPUT_NAME, INPUT_PATH, RUNNER_TOOL_CACHE } = process.env;
const folder = join(RUNNER_TOOL_CACHE, ARTIFACTS, INPUT_NAME);
rmSync(folder, { recursive: true, force: true });
const target = statSync(INPUT_PATH).isDirectory() ? folder : join(folder, basename(INPUT_PATH));
cpSync(INPUT_PATH, target, { recursive: true, verbatimSymlinks: true });
