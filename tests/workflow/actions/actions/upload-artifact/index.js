const { cpSync, rmSync, statSync } = require("node:fs");
const { basename, join } = require("node:path");

const { GITHUB_API_URL, INPUT_NAME, INPUT_PATH, RUNNER_TOOL_CACHE } = process.env;
const folder = join(RUNNER_TOOL_CACHE, "artifacts", GITHUB_API_URL.replaceAll("/", ""), INPUT_NAME);
rmSync(folder, { recursive: true, force: true });
const target = statSync(INPUT_PATH).isDirectory() ? folder : join(folder, basename(INPUT_PATH));
cpSync(INPUT_PATH, target, { recursive: true });
