const { appendFileSync, cpSync, rmSync, statSync } = require("node:fs");
const { basename, join } = require("node:path");

const { ARTIFACTS, GITHUB_OUTPUT, INPUT_ARCHIVE, INPUT_NAME, INPUT_PATH, RUNNER_TOOL_CACHE } = process.env;
const name = INPUT_ARCHIVE === "false" ? basename(INPUT_PATH) : INPUT_NAME;
if (/["\r\n:<>|*?\\/]/.test(name)) throw new Error(`The artifact name is not valid: ${name}`);
const folder = join(RUNNER_TOOL_CACHE, ARTIFACTS, name);
rmSync(folder, { recursive: true, force: true });
const target = statSync(INPUT_PATH).isDirectory() ? folder : join(folder, basename(INPUT_PATH));
cpSync(INPUT_PATH, target, { recursive: true, verbatimSymlinks: true });
appendFileSync(GITHUB_OUTPUT, `artifact-url=https://artifacts.invalid/${name}\n`);
