"""What the steps of the workflows that publish know about the bucket, and when they stop.

Each runs as a script, with a stand-in for the AWS CLI that reads a folder. In tests/workflow, whole
runs call the real one.
"""

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml

from docs.pages import blocks_of
from tests.workflow.steps import read_step

ROOT: Final = Path(__file__).parents[2]
PLAN: Final = "plan-and-publish.yml"
BACK: Final = "publish-an-earlier-export.yml"
FETCH: Final = "Fetch the manifest of the published site"
CHECK: Final = "Stop if the published site is not the one of the plan"
STOP: Final = "Stop if a publication has not finished"
UPLOAD: Final = "Upload the site, then its manifest"

AWS: Final = """
aws() {
  if [ -e "$OBJECTS/is-unreachable" ]; then
    echo "Could not connect to the endpoint URL" >&2
    return 1
  fi
  case "$1 $2" in
    "s3api get-object") object=$OBJECTS/${6##*/} file=${11} missing=NoSuchKey ;;
    "s3 cp") object=$OBJECTS/${4##*/} file=$5 missing=404 ;;
  esac
  if ! cp "$object" "$file" 2> /dev/null; then
    echo "An error occurred ($missing) when calling an operation" >&2
    return 1
  fi
  if [ "$2" = get-object ]; then
    stat --format %Y "$object"
  fi
}
"""
"""The two ways in which the steps read an object of the folder `publication`:

    aws s3api get-object --bucket BUCKET --key publication/NAME --query … --output text FILE
    aws s3 cp --only-show-errors s3://BUCKET/publication/NAME FILE
"""


@dataclass
class Bucket:
    """The folder `publication` of a bucket. `run` starts in the folder of a job."""

    objects: Path
    workspace: Path

    def store(self, name: str, body: str | None, *, time: int = 1) -> None:
        """Store an object, or remove it."""
        file = self.objects / name
        file.unlink(missing_ok=True)
        if body is not None:
            file.write_text(body, newline="")
            os.utime(file, (time, time))

    def run(self, script: str, given: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        """Run a script like a step. Return its log and its outputs.

        The log ends with the exit code.
        """
        output = self.workspace / "output"
        output.write_text("")
        variables = {
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "OBJECTS": str(self.objects),
            "BUCKET": "s3://docs-example-com",
            "FIRST_PUBLICATION": "false",
            "GITHUB_OUTPUT": str(output),
            **given,
        }
        ended = subprocess.run(
            ["bash", "-ec", AWS + script],
            cwd=self.workspace,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        outputs = dict(re.findall(r"^([\w-]+)=(.*)$", output.read_text(), re.MULTILINE))
        return f"{ended.stdout}exit code {ended.returncode}", outputs


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    bucket = Bucket(objects=tmp_path / "objects", workspace=tmp_path / "workspace")
    bucket.objects.mkdir()
    bucket.workspace.mkdir()
    return bucket


def step_of(example: str, name: str) -> str:
    """Return the script of a step."""
    return read_step(example, name)["run"]


def step_on_page(heading: str, name: str) -> str:
    """Return the script of a step of the page about the plan."""
    page = (ROOT / "docs" / "plan.md").read_text("utf-8")
    steps = []
    for block in blocks_of(page, heading, "yaml"):
        steps += [step for step in yaml.safe_load(block) if step["name"] == name]
    (step,) = steps
    return str(step["run"])


ARCHIVE: Final = "a" * 64
ANOTHER: Final = "d" * 64
COMMANDS: Final = "d\n::stop-commands::token\nstate=none@\n"
HALF_DONE: Final = f"::error::The publication of the archive {ANOTHER} has not finished, "
UNKNOWN: Final = HALF_DONE.replace(ANOTHER, "unknown")
NO_MANIFEST: Final = "::error::There is no manifest of the published site. If nothing is published "
UNREADABLE: Final = "::error::What is published could not be read: Could not connect"
SET_BUCKET: Final = "::error::Set the variable DOCS_BUCKET to a bucket's name"
FIRST: Final = {"FIRST_PUBLICATION": "true"}


@pytest.mark.parametrize(
    ("workflow", "published", "unfinished", "given", "error"),
    [
        (PLAN, "a site", None, {}, ""),
        (PLAN, None, None, FIRST, ""),
        (PLAN, None, None, {}, NO_MANIFEST),
        (PLAN, "a site", ANOTHER, {}, HALF_DONE),
        (PLAN, None, ANOTHER, FIRST, HALF_DONE),
        (PLAN, "a site", COMMANDS, {}, UNKNOWN),
        (PLAN, "a site", "", {}, UNKNOWN),
        (PLAN, None, None, {"BUCKET": "s3://"}, SET_BUCKET),
        (PLAN, None, None, {"BUCKET": "s3://docs-example-com/folder"}, SET_BUCKET),
        (BACK, "a site", None, {}, ""),
        (BACK, "a site", ANOTHER, {}, ""),
        (BACK, "a site", COMMANDS, {}, ""),
        (BACK, None, ANOTHER, {}, ""),
        (BACK, None, None, {}, "::error::There is no manifest of a published site in s3://"),
        (BACK, None, None, {"BUCKET": "s3://"}, SET_BUCKET),
    ],
)
def test_a_plan_knows_what_is_published_or_stops(
    bucket: Bucket,
    workflow: str,
    published: str | None,
    unfinished: str | None,
    given: Mapping[str, str],
    error: str,
) -> None:
    bucket.store("site.manifest", published)
    bucket.store("unfinished", unfinished)

    log, outputs = bucket.run(step_of(workflow, FETCH), given)

    assert error in log
    assert log.endswith("exit code 1" if error else "exit code 0"), log
    assert "stop-commands" not in log
    if error:
        return
    assert outputs["state"].startswith(f"{sha256(published)}@")
    expected = {None: "none", COMMANDS: "unknown"}.get(unfinished, unfinished)
    assert outputs["unfinished"] == expected
    assert ("::warning::" in log) == (unfinished is not None)
    if workflow == BACK:
        assert outputs["is-first"] == ("true" if published is None else "false")


def sha256(body: str | None) -> str:
    return "none" if body is None else hashlib.sha256(body.encode()).hexdigest()


@pytest.mark.parametrize("workflow", [PLAN, BACK])
def test_a_plan_that_would_overwrite_the_manifest_stops(bucket: Bucket, workflow: str) -> None:
    script = step_of(workflow, "Remember the manifest of the plan")
    (bucket.workspace / "new.manifest").write_text(PLANNED)

    log, outputs = bucket.run(script, {})

    assert log == "exit code 0"
    assert outputs == {"manifest": sha256(PLANNED)}

    (bucket.workspace / "site" / "publication").mkdir(parents=True)
    log, outputs = bucket.run(script, {})

    assert "::error::The site has a folder publication, where the manifest and the archives " in log
    assert log.endswith("exit code 1")
    assert outputs == {}


BEFORE: Final = "what was published when the plan was made"
PLANNED: Final = "what the plan publishes"
AGAIN: Final = "what was published then, but stored again"
OTHER: Final = "another site"
STALE: Final = "::error::Something else was published after the plan that was approved. "
NOT_FINISHED: Final = "::error::The publication of the archive {} has not finished. "
LEFT: Final = NOT_FINISHED.format(ANOTHER)


@pytest.mark.parametrize(
    ("before", "left_before", "published", "unfinished", "error"),
    [
        (BEFORE, None, BEFORE, None, ""),
        (BEFORE, None, OTHER, None, STALE),
        (BEFORE, None, AGAIN, None, STALE),
        (BEFORE, None, None, None, STALE),
        (None, None, None, None, ""),
        (None, None, BEFORE, None, STALE),
        # this job runs again
        (BEFORE, None, BEFORE, ARCHIVE, ""),
        (None, None, None, ARCHIVE, ""),
        (BEFORE, None, PLANNED, None, ""),
        (BEFORE, None, PLANNED, ARCHIVE, ""),
        (None, None, PLANNED, None, ""),
        (BEFORE, None, OTHER, ARCHIVE, STALE),
        (BEFORE, None, AGAIN, ARCHIVE, STALE),
        # another publication has not finished
        (BEFORE, None, BEFORE, ANOTHER, LEFT),
        (BEFORE, None, PLANNED, ANOTHER, LEFT),
        (BEFORE, None, BEFORE, COMMANDS, NOT_FINISHED.format("unknown")),
        (BEFORE, None, BEFORE, "", NOT_FINISHED.format("unknown")),
        # going back knew it
        (BEFORE, ANOTHER, BEFORE, ANOTHER, ""),
        (BEFORE, COMMANDS, BEFORE, COMMANDS, ""),
        (BEFORE, ANOTHER, BEFORE, None, ""),
        (BEFORE, ANOTHER, BEFORE, ARCHIVE, ""),
        (BEFORE, ANOTHER, BEFORE, "e" * 64, NOT_FINISHED.format("e" * 64)),
        (BEFORE, ANOTHER, OTHER, None, STALE),
        (BEFORE, ANOTHER, AGAIN, None, STALE),
        (None, ANOTHER, None, ANOTHER, ""),
        (None, ANOTHER, OTHER, None, STALE),
    ],
)
def test_the_published_site_is_compared_with_the_one_of_the_plan(
    bucket: Bucket,
    before: str | None,
    left_before: str | None,
    published: str | None,
    unfinished: str | None,
    error: str,
) -> None:
    bucket.store("site.manifest", before)
    bucket.store("unfinished", left_before)
    workflow = PLAN if left_before is None else BACK
    first = FIRST if before is None else {}
    log, plan = bucket.run(step_of(workflow, FETCH), first)
    assert log.endswith("exit code 0"), log

    if published == AGAIN:
        bucket.store("site.manifest", before, time=2)
    else:
        bucket.store("site.manifest", published)
    bucket.store("unfinished", unfinished)
    outputs_of_plan = {
        "SHA256": ARCHIVE,
        "PUBLISHED": plan["state"],
        "UNFINISHED": plan["unfinished"],
        "PLANNED": sha256(PLANNED),
    }
    log, outputs = bucket.run(step_of(PLAN, CHECK), outputs_of_plan)

    assert error in log
    assert log.endswith("exit code 1" if error else "exit code 0"), log
    assert "stop-commands" not in log
    if not error:
        assert outputs["is-first"] == ("true" if published is None else "false")
        assert outputs["unfinished"] == {None: "none", COMMANDS: "unknown"}.get(
            unfinished, unfinished
        )


@pytest.mark.parametrize(
    "script",
    [step_of(PLAN, FETCH), step_of(BACK, FETCH), step_of(PLAN, CHECK)],
    ids=["plan", "plan to go back", "publication"],
)
def test_what_cannot_be_read_is_not_missing(bucket: Bucket, script: str) -> None:
    bucket.store("is-unreachable", "")

    log, outputs = bucket.run(script, FIRST)

    assert UNREADABLE in log
    assert log.endswith("exit code 1")
    assert outputs == {}


OF_ONE_JOB: Final = {
    "upload-and-check.yml": (
        step_of("upload-and-check.yml", STOP),
        step_of("upload-and-check.yml", UPLOAD),
    ),
    "plan.md": (step_on_page("### S3", STOP), step_on_page("### S3", UPLOAD)),
}
RECIPES: Final = pytest.mark.parametrize("recipe", OF_ONE_JOB)
"""Workflows whose only job compares and publishes."""


@RECIPES
@pytest.mark.parametrize(
    ("unfinished", "job_id", "error", "output"),
    [
        (None, "", "", ""),
        (ARCHIVE, "se_1", "", ARCHIVE),
        (COMMANDS, "se_1", "", "unknown"),
        (ARCHIVE, "", NOT_FINISHED.format(ARCHIVE), None),
        (COMMANDS, "", NOT_FINISHED.format("unknown"), None),
    ],
)
def test_a_run_stops_unless_the_last_publication_has_finished(
    bucket: Bucket, recipe: str, unfinished: str | None, job_id: str, error: str, output: str | None
) -> None:
    bucket.store("unfinished", unfinished)

    log, outputs = bucket.run(OF_ONE_JOB[recipe][0], {"JOB_ID": job_id})

    assert error in log
    assert log.endswith("exit code 1" if error else "exit code 0"), log
    assert "stop-commands" not in log
    assert outputs.get("sha256") == output


@RECIPES
def test_a_run_stops_if_it_is_not_known_whether_the_last_publication_has_finished(
    bucket: Bucket, recipe: str
) -> None:
    bucket.store("is-unreachable", "")

    log, _ = bucket.run(OF_ONE_JOB[recipe][0], {"JOB_ID": ""})

    assert "::error::Could not check for an unfinished publication: Could not connect" in log
    assert log.endswith("exit code 1")


@RECIPES
@pytest.mark.parametrize(
    ("unfinished", "folder", "error"),
    [
        (ANOTHER, "site", f"another publication has not finished, that of the archive {ANOTHER}"),
        ("unknown", "site", "another publication has not finished, that of the archive unknown"),
        ("", "site/publication", "the site has a folder publication, where the manifest is"),
    ],
)
def test_nothing_is_uploaded_over_another_publication_or_the_manifest(
    bucket: Bucket, recipe: str, unfinished: str, folder: str, error: str
) -> None:
    (bucket.workspace / folder).mkdir(parents=True)

    log, _ = bucket.run(OF_ONE_JOB[recipe][1], {"SHA256": ARCHIVE, "UNFINISHED": unfinished})

    assert log == f"::error::Not uploaded: {error}\nexit code 1"
