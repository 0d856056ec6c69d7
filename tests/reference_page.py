"""Writes docs/reference.md from `action.yml` and the code: `make reference`.

The descriptions in `action.yml` are the meanings of inputs and outputs. They serve editors too, which show plain text: there,
"Modes `export` and `collect`: " are the modes, and `docs/…` a page, which become a column and a link.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from docs_platform_action.errors import ActionError
from docs_platform_action.inputs.table import INPUTS
from docs_platform_action.job import Job
from docs_platform_action.report.failures import MAX_DETAILED_FAILURES
from docs_platform_action.signals import SIGNALS

ROOT: Final = Path(__file__).parents[1]
FILE: Final = ROOT / "docs" / "reference.md"
ALL: Final = "all"
_MODES: Final = re.compile(r"Modes? `\w+`(?:(?:, | and )`\w+`)*: ")


class Failure(NamedTuple):
    """What happened, and what to do, in Markdown."""

    happened: str
    remedy: str


_OPENING: Final = """\
<!-- Do not edit: `make reference` writes this page from action.yml and tests/reference_page.py. -->

# Reference

For workflow authors who look something up: all [inputs](#inputs), [outputs](#outputs), [keys of `results`](#results), [exit
codes](#exit-codes), [failure reasons](#failure-reasons) and [environment variables](#environment-variables). The
[README](../README.md) is the introduction.
"""

_INPUTS: Final = """\
## Inputs

- A *duration* is a number with a unit: `500ms`, `30s`, `15m`, `1h30m`. A bare number is seconds. It must be greater than zero.
- A *boolean* is `true` or `false`.
- A *path* is [relative to the workspace](#paths).

White space around a value is removed. All input errors are reported together, before any request. An input that has no effect in
the step's mode causes a warning, except `job-id` in mode `export`, which is an error.

A misspelled name is an error: "`site-pth` is not an input; did you mean `site-path`?" It counts as misspelled if at most two
characters, and at most a third of the right name, differ, and the right input is empty or has its default. All other unknown
names cause one warning.

[Outside GitHub Actions](outside-github-actions.md), names may have underscores: `INPUT_ADMIN_KEY` is `admin-key`.
"""

_PATHS: Final = """\
### Paths

Paths in inputs are relative to the workspace: `defaults.run.working-directory` does not apply to `uses:` steps. An absolute path
must be inside the workspace or the runner's temporary folder. Any other path is refused, because the file would be lost with the
container.

No shell reads a path. One that begins with `~`, or contains `$NAME`, `${NAME}`, `%NAME%` or a backslash, is refused. Instead of
`$RUNNER_TEMP/site`, write `${{ runner.temp }}/site`.

Paths in outputs are relative to the workspace too, so `run:` steps and other actions can use them. For a path in the runner's
temporary folder, the output is the container's own path, which other steps do not have. Use `"$RUNNER_TEMP/…"` in their scripts.
In a script, `${{ runner.temp }}` is wrong in jobs with `container:`, where it is the path on the runner.
"""

_OUTPUTS: Final = """\
## Outputs

All outputs are text. With several domains, the outputs of one job, from `jobId` to `prLink`, are not set: read `results`.
[Links and jobs](links-and-jobs.md) describes which outputs GitHub passes to another job.

In mode `agent`, the step succeeds if the `status` is `completed` or `archived`. An archived job also causes a warning, because it
may not have finished its work. With `require-pr`, the step fails if the job has no pull request.
"""

_RESULTS: Final = """\
## Results

The output `results` has one object per job, in the order of `domain`. Each object has all of these keys; unknown values are
`null`. For example, this expression is true if any export timed out:
`contains(fromJSON(steps.docs.outputs.results).*.failureReason, 'timeout')`.
"""

_EXIT_CODES: Final = """\
## Exit codes
"""

_FAILURES: Final = f"""\
## Failure reasons

Each failed job has an annotation with what happened, what to do and, if known, the likely cause. The log and the job summary
contain the same. If more than {MAX_DETAILED_FAILURES} domains fail, one more annotation counts the rest. A later step can
read the reason:

```yaml
- if: failure() && steps.docs.outputs.failureReason == 'timeout'
  run: echo "Collect it later with mode collect and job-id $JOB"
  env:
    JOB: ${{{{ steps.docs.outputs.jobId }}}}
```
"""

_ENVIRONMENT: Final = """\
## Environment variables

The action also reads these variables. The [threat model](threat-model.md#what-it-reads-from-the-environment) lists all variables
that it reads, including those that the runner sets.
"""

OUTPUT_TIMES: Final = {
    "jobId": "as soon as it is known",
    "status": "at the end, also after a failure; not set if the API reported none",
    "bundleUrl": "after a success; not with `wait: false`",
    "expiresAt": "with `bundleUrl`, if the API reports it",
    "pageCount": "if the API reports it for the completed job",
    "bundlePath": "after a download, with `bundle-path`",
    "bundleSize": "after a download, with `bundle-path` or `site-path`",
    "bundleSha256": "after a download, with `bundle-path` or `site-path`",
    "sitePath": "after unpacking, with `site-path`",
    "valuesFile": "after writing, with `values-file`",
    "prLink": "if the job is `completed` or `archived` and has a pull request",
    "results": "always, except after a cancel that leaves no time to write it",
    "durationSeconds": "always, with the same exception",
    "failureReason": "after a failure",
}
"""When each output is written."""

RESULT_NUMBERS: Final = {"pageCount", "bundleSize", "durationSeconds"}
"""The keys of `results` whose values are numbers. All others are strings."""

RESULT_MEANINGS: Final = {
    "mode": (ALL, "Value of `mode`."),
    "domain": ("export, collect", "The domain, as the input names it."),
    "projectId": ("agent", "Value of `project-id`."),
    "repository": ("agent", "Repository that the agent works on, as the API reports it."),
    "ref": ("agent", "Git branch that the agent works on, as the API reports it."),
    "model": ("agent", "AI model of the agent, as the API reports it."),
    "createdAt": ("agent", "When the agent job was created, as the API wrote it."),
    "archivedAt": ("agent", "When the agent job was archived, as the API wrote it."),
    "durationSeconds": (ALL, "How long the step worked on this job, in whole seconds."),
    "failureReason": (ALL, "Why this job failed, in [one word](#failure-reasons)."),
    "message": (ALL, "What failed, in one line. The key and the secrets of links are hidden."),
}
"""The mode and the meaning of each key of `results` that does not have the meaning of an output."""

EXIT_CODES: Final = {
    0: "success",
    1: "failure; `failureReason` says why",
    **{
        128 + signal: f"cancelled by {signal.name}; `failureReason` is `cancelled`, if there was time to write the outputs"
        for signal in SIGNALS
    },
}

FAILURES: Final = {
    "invalid-input": Failure(
        happened="An input is missing or invalid. No request was made.",
        remedy="Correct the inputs of the step. The message lists all errors.",
    ),
    "unauthorized": Failure(
        happened="401: the key is missing, mistyped, expired, or belongs to another organization.",
        remedy="Check the secret that `admin-key` reads. If it is right, create a new key on the dashboard's API keys page.",
    ),
    "forbidden": Failure(
        happened=(
            "403: the plan does not include static export, the key lacks the permission, or the platform does not allow the "
            "runner's IP address."
        ),
        remedy="Check the organization's plan and the key's permissions in the dashboard.",
    ),
    "not-found": Failure(
        happened=(
            "404: the platform does not know the job, the project or the domain. If the message starts with `base-url`, "
            "that address has no such endpoint."
        ),
        remedy=(
            "If the message starts with `base-url`, correct it. Otherwise compare `domain`, `project-id` and `job-id` with "
            "the dashboard."
        ),
    ),
    "rejected": Failure(
        happened="Any other 4xx that a retry cannot fix. With 409 at the start, an export of the domain already runs.",
        remedy="Read the API's text in the message. The cause is often `domain` or `start-options`.",
    ),
    "job-failed": Failure(
        happened="The job's status is `failed`.",
        remedy=(
            "Export: check the job in the dashboard, fix the site, and run the workflow again. Agent: read the agent's "
            "session, then start a new agent job."
        ),
    ),
    "too-few-pages": Failure(
        happened=(
            "The export finished with fewer pages than `min-pages`, or the number of pages is unknown. Nothing was published."
        ),
        remedy=(
            "Compare the site with the dashboard. If the number of pages is right, collect the job with `mode: collect` and a "
            "lower `min-pages`. See [too few pages](bundles.md#too-few-pages)."
        ),
    ),
    "no-pull-request": Failure(
        happened="The job ended without a pull request, and `require-pr` is set.",
        remedy="Read the agent's session. Remove `require-pr` if a run without a pull request is fine.",
    ),
    "timeout": Failure(
        happened="The job did not end within `timeout`. It continues on the platform.",
        remedy="Collect it in a later run with `mode: collect` and `job-id`. If jobs often take longer, raise `timeout`.",
    ),
    "unavailable": Failure(
        happened=(
            "Temporary errors (network, 408, 425, 429, 5xx, responses that are not the API's) lasted longer than "
            "`outage-tolerance`, the host in `base-url` does not exist, the API's certificate is not trusted, or the proxy in "
            "the environment cannot be used: a SOCKS proxy, an address that is not valid, or missing credentials (407). For the "
            "start request, see `start-unconfirmed`."
        ),
        remedy=(
            "Check the platform's status. For longer outages, raise `outage-tolerance`; for a private certificate "
            "authority, set `ca-bundle`; for a proxy, write `HTTPS_PROXY` as `http://user:password@host:port`."
        ),
    ),
    "bad-response": Failure(
        happened=(
            "A final response does not have the API's format, such as a web page before the API's first successful response, is "
            "about another job, has the admin key in a job ID or a link, or the API redirects to another address."
        ),
        remedy=(
            "Check that `base-url` is the address of the API itself. If it is, report the failure to the platform. If a response "
            "has the key, replace the key."
        ),
    ),
    "start-unconfirmed": Failure(
        happened=(
            "The platform may have processed the start request, but did not confirm it: the connection was lost, or the "
            "response was 408, 425 or 5xx (except 503 with `Retry-After`), or a 2xx that is not JSON. The request is not sent "
            "again, because that could start a second export."
        ),
        remedy=(
            "Check the dashboard to see whether the export is running. If it is, collect it with `mode: collect` and "
            "`job-id`. If not, run the workflow again."
        ),
    ),
    "download-failed": Failure(
        happened=(
            "The bundle could not be downloaded completely: the storage refused the request or kept failing, the length is "
            "wrong, or the disk is full."
        ),
        remedy=(
            "Read the message. For longer outages, raise `outage-tolerance`; for a private certificate authority, set "
            "`ca-bundle`."
        ),
    ),
    "invalid-bundle": Failure(
        happened=(
            "The archive is damaged, unsafe or of an unknown kind. `site-path` is left untouched. The archive stays at "
            "`bundle-path` for inspection, unless `min-pages` is set and the API reports no `pageCount`."
        ),
        remedy=(
            "Run the workflow again. If it fails the same way, report it to the platform. If the message is about disk space, "
            "use a larger disk."
        ),
    ),
    "cancelled": Failure(
        happened="The run was cancelled, or the step or job reached its `timeout-minutes`.",
        remedy="If `jobId` is set, the job continues on the platform: collect it with `mode: collect` and `job-id`.",
    ),
    "internal-error": Failure(
        happened="A bug in the action, or a file of the runner that cannot be written.",
        remedy=(
            "If the message names a file, fix the runner. Otherwise run the job again with debug logging, and attach "
            "its log to a bug report."
        ),
    ),
}
"""By `failureReason`."""

_VARIABLES: Final = {
    "`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`": (
        "[Proxies](runners.md#proxy) for the API and the storage. No proxy is used for a loopback host; SOCKS is not supported."
    ),
    "`RUNNER_DEBUG`": (
        "`1` logs each request with method, path, status, milliseconds and request ID. GitHub sets it in runs with debug logging."
    ),
    "`OUTPUT_ENV_FILE`": "[Outside GitHub Actions](outside-github-actions.md#the-outputs): the file for the outputs.",
}


def page() -> str:
    """Return the content of docs/reference.md."""
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    return "\n".join(
        [
            *(_OPENING, _INPUTS),
            *_table(("input", "default", "in mode", "meaning"), _input_rows(action["inputs"])),
            *("", _PATHS, _OUTPUTS),
            *_table(("output", "in mode", "when", "meaning"), _output_rows(action["outputs"])),
            *("", _RESULTS),
            *_table(("key", "type", "in mode", "meaning"), _result_rows(action["outputs"])),
            *("", _EXIT_CODES),
            *_table(("exit code", "meaning"), EXIT_CODES.items()),
            *("", _FAILURES),
            *_table(("`failureReason`", "what happened", "what to do"), _failure_rows()),
            *("", _ENVIRONMENT),
            *_table(("variable", "meaning"), _VARIABLES.items()),
            "",
        ]
    )


def _input_rows(inputs: dict[str, Any]) -> Iterator[Sequence[str]]:
    for known in INPUTS:
        default = "required" if inputs[known.name].get("required") else f"`{known.default}`" if known.default else ""
        modes = "" if known.name == "mode" else ", ".join(known.modes)
        yield f"`{known.name}`", default, modes, _meaning(inputs[known.name])


def _output_rows(outputs: dict[str, Any]) -> Iterator[Sequence[str]]:
    for name, output in outputs.items():
        yield f"`{name}`", modes_of(output["description"]), OUTPUT_TIMES[name], _meaning(output)


def _result_rows(outputs: dict[str, Any]) -> Iterator[Sequence[str]]:
    for name in Job(mode=None).result(0.0):
        kind = "number" if name in RESULT_NUMBERS else "string"
        if name in RESULT_MEANINGS:
            mode, meaning = RESULT_MEANINGS[name]
        else:
            mode = modes_of(outputs[name]["description"])
            meaning = _meaning(outputs[name]).partition(". ")[0].removesuffix(".") + "."
        yield f"`{name}`", kind, mode, meaning


def _failure_rows() -> Iterator[Sequence[str]]:
    for kind in ActionError.__subclasses__():
        yield f"`{kind.failure_reason}`", *FAILURES[kind.failure_reason]


def modes_of(description: str) -> str:
    """Return the modes that start a description."""
    start = _MODES.match(description)
    return ", ".join(re.findall(r"`(\w+)`", start[0])) if start else ALL


def _meaning(described: dict[str, str]) -> str:
    """Return a description as Markdown, without the modes that start it if it is the same in all of them."""
    text = described["description"].strip()
    start = _MODES.match(text)
    if start is not None and "Mode `" not in text[start.end() :]:
        text = text[start.end()].upper() + text[start.end() + 1 :]
    return re.sub(r"docs/([\w-]+\.md)(?:#([\w-]+))?", _link, text)


def _link(found: re.Match[str]) -> str:
    page, anchor = found.groups()
    target = f"#{anchor}" if page == FILE.name else f"{page}#{anchor}" if anchor else page
    return f"[{(anchor or page.removesuffix('.md')).replace('-', ' ')}]({target})"


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |".replace("|  |", "| |")


if __name__ == "__main__":
    FILE.write_text(page(), "utf-8")
