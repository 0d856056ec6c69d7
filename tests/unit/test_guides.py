"""The guide pages say whom they are for, their workflows are valid, and their numbers are those of the code."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench.schedules import SHAPES, polls_of_the_action

from docs_platform_action.api import admin_api
from docs_platform_action.api import client as api_client
from docs_platform_action.archive import limits, names, symlinks
from docs_platform_action.bundle import download, staging, storage
from docs_platform_action.errors import ActionError
from docs_platform_action.http import client, rate_limit, retry
from docs_platform_action.http.circuit_breaker import CircuitBreaker
from docs_platform_action.inputs import paths, validators
from docs_platform_action.inputs.settings import INPUTS
from docs_platform_action.job import Job
from docs_platform_action.jobs import progress, schedule
from docs_platform_action.models import EXPORT
from docs_platform_action.report import failures, job_log, outputs
from tests.faults import FAULTS
from tests.unit.fakes import FakeApiClient, RecordedEvents, answer
from tests.virtual_time import VirtualClock

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
GUIDES = ("bundles", "how-it-waits", "links-and-jobs", "many-domains", "migrating-from-curl", "versions")
OTHERS = (
    *("docs/outside-github-actions.md", "docs/runners.md", "docs/threat-model.md", "SECURITY.md"),
    *("docs/evidence/performance.md", "docs/evidence/reliability.md", "bench/README.md"),
)
DEFAULTS = {known.name: known.default for known in INPUTS}


def text_of(guide: str) -> str:
    return (DOCS / f"{guide}.md").read_text("utf-8")


def snippets(guide: str) -> list[Any]:
    """Return the parsed parts of workflows on a page."""
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text_of(guide), flags=re.DOTALL)]


def steps_in(value: Any) -> list[dict[str, Any]]:
    """Return all steps in a part of a workflow."""
    if isinstance(value, dict):
        own = [value] if {"run", "uses"} & {*value} else []
        return own + [step for inner in value.values() for step in steps_in(inner)]
    return [step for inner in value for step in steps_in(inner)] if isinstance(value, list) else []


def complete(guide: str) -> list[dict[str, Any]]:
    """Return each part of a workflow that has steps as a complete workflow."""
    workflows = []
    for snippet in snippets(guide):
        if isinstance(snippet, list):
            jobs = {"docs": {"name": "Docs", "runs-on": "ubuntu-latest", "steps": snippet}}
        elif isinstance(snippet, dict) and "jobs" in snippet:
            jobs = snippet["jobs"]
        else:
            continue
        workflows.append({"name": guide, "on": {"push": {"branches": ["main"]}}, "permissions": {}, "jobs": jobs})
    return workflows


@pytest.mark.parametrize("page", [*(f"docs/{guide}.md" for guide in GUIDES), *OTHERS])
def test_a_page_says_first_whom_it_is_for(page: str) -> None:
    title, first, *_ = (ROOT / page).read_text("utf-8").split("\n\n")

    assert title.startswith("# ")
    assert first.startswith("For ")


class TestSnippets:
    @pytest.mark.parametrize("guide", GUIDES)
    def test_they_use_inputs_and_outputs_that_exist(self, guide: str) -> None:
        steps = [step for step in steps_in(snippets(guide)) if "docs-platform-action@" in step.get("uses", "")]

        assert {name for step in steps for name in step.get("with", {})} <= {*ACTION["inputs"]}
        assert {*re.findall(r"steps\.(?:docs|start|agent)\.outputs\.(\w+)", text_of(guide))} <= {*ACTION["outputs"]}

    @pytest.mark.parametrize("guide", GUIDES)
    def test_they_use_no_expression_in_a_script_and_a_secret_as_key(self, guide: str) -> None:
        steps = steps_in(snippets(guide))
        keys = {step["with"]["admin-key"] for step in steps if "admin-key" in step.get("with", {})}

        assert [step["run"] for step in steps if "${{" in str(step.get("run", ""))] == []
        assert keys <= {"${{ secrets.DOCS_ADMIN_KEY }}"}

    def test_they_are_valid_workflows(self, tmp_path: Path) -> None:
        files = []
        for guide in GUIDES:
            for number, workflow in enumerate(complete(guide)):
                files.append(tmp_path / f"{guide}-{number}.yml")
                files[-1].write_text(yaml.safe_dump(workflow, sort_keys=False))

        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *files]
        checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

        assert len(files) > 10
        assert checked.returncode == 0, checked.stdout + checked.stderr

    def test_the_helm_values_are_those_that_the_action_writes(self) -> None:
        (values,) = (snippet["staticExport"] for snippet in snippets("bundles") if "staticExport" in snippet)

        assert [*values] == ["enabled", "bundleUrl", "version"]


@pytest.mark.parametrize(
    ("holds", "guide", "text"),
    [
        # downloads and archives
        (paths.MIN_FREE_BYTES == 2**20, "bundles", "at least 1 MiB of free space"),
        (storage.IDLE_SECONDS == 30, "bundles", "receives nothing for 30 s"),
        (download.MAX_BUNDLE_BYTES == 50 * 2**30, "bundles", "A bundle of unknown size may have at most 50 GiB."),
        (staging.ABANDONED_SECONDS == 24 * 3600, "bundles", "removes it when it is more than a day old"),
        (names.MAX_NAME_BYTES == 1024, "bundles", "names longer than 1,024 bytes"),
        (symlinks.MAX_LINKS == 10_000, "bundles", "more than 10,000 symbolic links"),
        (limits.MAX_ENTRIES == 250_000, "bundles", "more than 250,000 files and folders"),
        (limits.MAX_UNPACKED_BYTES == 20 * 2**30, "bundles", "more than 20 GiB unpacked"),
        (limits.MAX_RESERVED_BYTES == 2**30, "bundles", "keeps 10 % of the disk or 1 GiB free, whichever is smaller"),
        (limits.MAX_RESERVED_INODES == 10_000, "bundles", "10 % of the inodes or 10,000 free, whichever is smaller"),
        ((staging.FILE_MODE, staging.FOLDER_MODE) == (0o644, 0o755), "bundles", "Files have the mode 0644, and folders 0755."),
        # many domains
        (rate_limit.REQUESTS_PER_SECOND == 10, "many-domains", "sends the API at most 10 requests per second"),
        (validators.MAX_PARALLEL == 100, "many-domains", "the maximum is 100"),
        (DEFAULTS["max-parallel"] == "10", "many-domains", "The default is 10 and"),
        (
            failures.MAX_DETAILED_FAILURES == 9,
            "many-domains",
            "If more than 9 domains fail, a tenth annotation counts the others.",
        ),
        (outputs.MAX_JOB_OUTPUT_BYTES == 2**20, "many-domains", "1 MB together. GitHub counts two bytes per character."),
        (outputs.MAX_VARIABLE_BYTES == 128 * 2**10, "many-domains", "Linux allows 128 KiB for one variable"),
        # waiting
        (DEFAULTS["poll-interval"] == "1s", "how-it-waits", "All times on this page are for the default inputs."),
        (schedule.FIRST_SECONDS == 3, "how-it-waits", "is read after 3 s"),
        (schedule.REMAINING_FRACTION == 3 / 5, "how-it-waits", "after three fifths of the remaining time"),
        (schedule.OBSERVED_FRACTION == 2 / 5, "how-it-waits", "at most two fifths of the time over which the rate was measured"),
        (
            (round(schedule.REMAINING_FRACTION * 90), round(schedule.OBSERVED_FRACTION * 60)) == (54, 24),
            "how-it-waits",
            "Rule 2 allows a pause of 54 s, and rule 3 one of 24 s",
        ),
        (schedule.FIRST_OBSERVED_FRACTION == 1 / 2, "how-it-waits", "at most half of the time since the first read that"),
        (len(polls_of_the_action(240, SHAPES["linear"])) == 20, "how-it-waits", "A job of four minutes is read about 20 times,"),
        (len(polls_of_the_action(240, SHAPES["convex"])) == 30, "how-it-waits", "or about 30 times if its progress speeds up."),
        (schedule.ENDGAME == 4, "how-it-waits", "When less than four seconds remain,"),
        (progress.NOISE_POINTS == 5, "how-it-waits", "falls by more than 5 points"),
        (progress.CONFIRMING_READINGS == 3, "how-it-waits", "in three consecutive reads"),
        (progress.MAX_RESTARTS == 10, "how-it-waits", "After more than ten such falls, the action ignores the progress."),
        (schedule.EARLY_UNTIL_SECONDS == 40, "how-it-waits", "| in the first 40 s of a job that this step has started | 7.5 s |"),
        (schedule.EARLY_SECONDS == 7.5, "how-it-waits", "| in the first 40 s of a job that this step has started | 7.5 s |"),
        (schedule.STEADY_SECONDS == 4.75, "how-it-waits", "| later, and for any job that the step attaches to | 4.75 s |"),
        (schedule.LATE_FRACTION == 1 / 250, "how-it-waits", "| 1/250 of the time in this status, up to"),
        (
            round(schedule.STEADY_SECONDS / schedule.LATE_FRACTION / 60) == 20,
            "how-it-waits",
            "after about 20 minutes in the same",
        ),
        (schedule.STEADY_SECONDS * 0.5 == 2.375, "how-it-waits", "the pauses are 2.375 s"),
        (schedule.EARLY_SECONDS * 0.5 == 3.75, "how-it-waits", "and 3.75 s in the first 20 s"),
        (retry.pause_ceiling(1) == 1, "how-it-waits", "The limit starts at 1 s"),
        (retry.MAX_PAUSE_SECONDS == 30, "how-it-waits", "stays at 30 s (exponential backoff with full jitter)"),
        ({408, 425, 429, *range(500, 600)} == retry.TEMPORARY_STATUSES, "how-it-waits", "408, 425, 429, every 5xx status"),
        (admin_api.SETTLING_SECONDS == 30, "how-it-waits", "404 is temporary for 30 s after this step has started the job"),
        (retry.LAST_ATTEMPT_SECONDS == 10, "how-it-waits", "reads the status once more, for at most 10 s"),
        (client.Timeouts().connect_seconds == 10, "how-it-waits", "| time to look up the host and connect | 10 s |"),
        (
            client.Timeouts().total_seconds == 60,
            "how-it-waits",
            "| time for a whole request, even if the server sends slowly | 60 s |",
        ),
        (admin_api.BUNDLE_TIMEOUT_SECONDS == 300, "how-it-waits", "because the platform may pack the bundle first | 300 s |"),
        (api_client.MAX_RESPONSE_BYTES == 2**20, "how-it-waits", "| size of a response | 1 MiB |"),
        (rate_limit.REQUESTS_PER_SECOND == 10, "how-it-waits", "| requests per second, of all domains together | 10 |"),
        (job_log.HEARTBEAT_SECONDS < 60, "how-it-waits", "at least one line per minute"),
        (job_log.STALL_SECONDS == 600, "how-it-waits", "A warning appears after ten minutes without progress."),
    ],
)
def test_the_numbers_are_those_of_the_code(holds: bool, guide: str, text: str) -> None:
    assert holds
    assert text in " ".join(text_of(guide).split())


class TestRetriedStatuses:
    """The statuses that the page about waiting names are those that the code retries, and those that end the step."""

    PAGE = " ".join(text_of("how-it-waits").split())

    def named(self, pattern: str) -> set[int]:
        """Return the statuses in the one place of the page that matches."""
        (found,) = re.findall(pattern, self.PAGE)
        return {int(status) for status in re.findall(r"\d{3}", found)}

    @property
    def always(self) -> set[int]:
        return self.named(r"temporary errors: network errors, ([\d, ]+), every 5xx status,")

    @property
    def after_a_start(self) -> set[int]:
        return self.named(r"(\d{3}) is temporary for 30 s after this step has started the job,")

    @property
    def for_the_link(self) -> set[int]:
        return self.named(r"(\d{3}) for the bundle link is temporary,")

    def retried(self, *, link: bool, just_started: bool) -> set[int]:
        """Return the 4xx and 5xx statuses after which the code repeats a status read, or the request for the bundle link."""
        return {status for status in range(400, 600) if self.is_retried(status, link=link, just_started=just_started)}

    def is_retried(self, status: int, *, link: bool, just_started: bool) -> bool:
        clock = VirtualClock()
        success = {"bundleUrl": "https://storage.example.com/a"} if link else {"status": "running"}
        sender = FakeApiClient(clock, answer(status, {"error": "no"}), answer(200, success))
        started_at = clock.monotonic() if just_started else None
        job = Job(mode=EXPORT, domain="docs.example.com", job_id="se_1", started_at=started_at)
        api = admin_api.AdminApi(
            client=sender,
            breaker=CircuitBreaker(clock),
            clock=clock,
            outage_tolerance_seconds=300,
            events=RecordedEvents(),
            jobs=[job],
        )
        try:
            if link:
                api.make_bundle(job)
            else:
                api.read_export(job, deadline=clock.monotonic() + 1000)
        except ActionError:
            return False
        return len(sender.sent) == 2

    def test_a_status_read_is_repeated_after_those_on_the_page(self) -> None:
        assert self.retried(link=False, just_started=False) == {*self.always, *range(500, 600)}

    def test_a_started_job_may_be_unknown_for_a_while(self) -> None:
        always = self.retried(link=False, just_started=False)

        assert self.retried(link=False, just_started=True) - always == self.after_a_start

    def test_the_request_for_the_link_is_also_repeated_after_another_status(self) -> None:
        always = self.retried(link=False, just_started=False)

        assert self.retried(link=True, just_started=False) - always == self.for_the_link

    def test_all_others_end_the_step_at_once(self) -> None:
        final = self.named(r"- ([\d, ]+) and all other 4xx statuses end the step at once\.")

        assert final
        assert final & self.retried(link=True, just_started=True) == set()


class TestEvidence:
    PERFORMANCE = text_of("evidence/performance")

    def figures(self, row: str) -> list[float]:
        """Return the numbers in the row of the page that starts with these cells."""
        (cells,) = re.findall(rf"(?m)^\| {re.escape(row)} \| (.*) \|$", self.PERFORMANCE)
        return [float(cell.replace(",", "")) for cell in cells.split(" | ") if re.fullmatch(r"[\d.,]+", cell)]

    def test_the_reliability_page_has_the_named_counts(self) -> None:
        waiting = " ".join(text_of("how-it-waits").split())

        assert len(FAULTS) == 87
        assert "each of 87 faults" in waiting
        assert "| processes killed | 100 |" in text_of("evidence/reliability")
        assert "100 killed processes" in waiting

    def test_the_image_has_the_named_sizes(self) -> None:
        waiting = " ".join(text_of("how-it-waits").split())
        layers, beyond_the_base, with_nothing_present = self.figures("this action")

        (added,) = re.findall(r"(?m)^\| total \| ([\d.]+) \| \d+% \| [\d.]+ \|$", self.PERFORMANCE)
        assert float(added) < 8
        assert "adds less than 8 MB" in waiting
        assert (layers, round(with_nothing_present)) == (2, 121)
        assert "this was 121 MB in total" in waiting
        assert beyond_the_base < 3
        assert "the pull fetches less than 3 MB." in waiting

    def test_as_many_domains_fit_as_the_page_says(self) -> None:
        (fewest,) = {*self.figures("the same, with session tokens of 900 characters in the links")}
        (most,) = {*self.figures("1 MB of outputs per job, with links of 350 characters in `results`")}
        by_10, by_100 = self.figures("6 hours per job on GitHub's runners")

        page = " ".join(text_of("many-domains").split())
        assert fewest >= 300
        assert most >= 650
        assert "300 to 650, depending on the length of the links" in page
        # a variable of 128 KiB has a quarter of the characters that 1 MB of outputs has
        assert fewest / 4 >= 75
        assert most / 4 >= 165
        assert "75 to 165, depending on the length of the links" in page
        assert by_10 >= 500
        assert by_100 >= 3000
        assert "about 500 with `max-parallel: 10`, about 3,000 with `max-parallel: 100`" in page


def test_the_page_about_waiting_names_the_base_image() -> None:
    used = {*re.findall(r"(?m)^FROM (\S+)", (ROOT / "Dockerfile").read_text("utf-8"))}

    assert used == {*re.findall(r"`(python:[^`]+)`", text_of("how-it-waits"))}
