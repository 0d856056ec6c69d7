const { appendFileSync } = require("node:fs");

const region = process.env["INPUT_AWS-REGION"] ?? "";
const role = process.env["INPUT_ROLE-TO-ASSUME"] ?? "";
for (const [name, value, pattern] of [
  ["aws-region", region, /^[a-z0-9-]+$/],
  ["role-to-assume", role, /^arn:aws:iam::[0-9]{12}:role\/.+$/],
]) {
  if (!pattern.test(value)) {
    console.log(`::error::${name} is '${value}'`);
    process.exit(1);
  }
}
const variables = {
  AWS_REGION: region,
  AWS_DEFAULT_REGION: region,
  AWS_ACCESS_KEY_ID: "ASIA-OF-THE-TESTS",
  AWS_SECRET_ACCESS_KEY: "aws-s3cret-of-the-tests",
  AWS_SESSION_TOKEN: "aws-t0ken-of-the-tests",
};
for (const [name, value] of Object.entries(variables)) appendFileSync(process.env.GITHUB_ENV, `${name}=${value}\n`);
