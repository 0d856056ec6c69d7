"""The numbers that pages promise are those of the code. Only numbers with their units are compared, not sentences."""

import re
from pathlib import Path

import pytest
from bench.schedules import SHAPES, polls_of_the_action

from docs_platform_action import redaction, text
from docs_platform_action.api import admin_api
from docs_platform_action.api import client as api_client
from docs_platform_action.archive import codecs, limits, names, symlinks, tar
from docs_platform_action.bundle import download, staging, storage
from docs_platform_action.http import client, connection, rate_limit, response, retry
from docs_platform_action.inputs import paths, validators
from docs_platform_action.inputs.settings import INPUTS
from docs_platform_action.jobs import progress, schedule
from docs_platform_action.report import failures, job_log, outputs, signed_links

ROOT = Path(__file__).parents[2]
DEFAULTS = {known.name: known.default for known in INPUTS}
MIB, GIB = 2**20, 2**30


def flowing(page: str) -> str:
    return " ".join((ROOT / page).read_text("utf-8").split())


@pytest.mark.parametrize(
    ("of_the_code", "number", "written", "pages"),
    [
        # requests
        (rate_limit.REQUESTS_PER_SECOND, 10, "10 requests", ["threat-model", "many-domains"]),
        (client.Timeouts().connect_seconds, 10, "10 s", ["how-it-waits"]),
        (client.Timeouts().total_seconds, 60, "60 s", ["threat-model", "how-it-waits"]),
        (admin_api.BUNDLE_TIMEOUT_SECONDS, 300, "300 s", ["how-it-waits"]),
        (api_client.MAX_RESPONSE_BYTES, MIB, "1 MiB", ["threat-model", "how-it-waits"]),
        (response.MAX_HEAD_BYTES, 64 * 1024, "64 KiB", ["threat-model"]),
        (response.MAX_INTERIM_RESPONSES, 100, "100", ["threat-model"]),
        (connection.create_ssl_context(None).minimum_version.name, "TLSv1_2", "TLS 1.2", ["threat-model"]),
        (retry.pause_ceiling(1), 1, "1 s", ["how-it-waits"]),
        (retry.MAX_PAUSE_SECONDS, 30, "30 s", ["how-it-waits"]),
        (retry.LAST_ATTEMPT_SECONDS, 10, "10 s", ["how-it-waits"]),
        (retry.TEMPORARY_STATUSES, {408, 425, 429, *range(500, 600)}, "408, 425, 429", ["how-it-waits"]),
        (admin_api.SETTLING_SECONDS, 30, "30 s", ["how-it-waits"]),
        # waiting
        (DEFAULTS["poll-interval"], "1s", "1s", ["reference"]),
        (schedule.FIRST_SECONDS, 3, "3 s", ["how-it-waits"]),
        (schedule.REMAINING_FRACTION, 3 / 5, "three fifths", ["how-it-waits"]),
        (schedule.OBSERVED_FRACTION, 2 / 5, "two fifths", ["how-it-waits"]),
        (schedule.FIRST_OBSERVED_FRACTION, 1 / 2, "half", ["how-it-waits"]),
        (len(polls_of_the_action(240, SHAPES["linear"])), 20, "20 times", ["how-it-waits"]),
        (len(polls_of_the_action(240, SHAPES["convex"])), 30, "30 times", ["how-it-waits"]),
        (schedule.ENDGAME, 4, "four seconds", ["how-it-waits"]),
        (schedule.EARLY_UNTIL_SECONDS, 40, "40 s", ["how-it-waits"]),
        (schedule.EARLY_SECONDS, 7.5, "7.5 s", ["how-it-waits"]),
        (schedule.STEADY_SECONDS, 4.75, "4.75 s", ["how-it-waits"]),
        (schedule.LATE_FRACTION, 1 / 250, "1/250", ["how-it-waits"]),
        (progress.NOISE_POINTS, 5, "5 points", ["how-it-waits"]),
        (progress.CONFIRMING_READINGS, 3, "three", ["how-it-waits"]),
        (progress.MAX_RESTARTS, 10, "ten", ["how-it-waits"]),
        (job_log.HEARTBEAT_SECONDS, 55, "minute", ["how-it-waits"]),
        (job_log.STALL_SECONDS, 600, "ten minutes", ["how-it-waits"]),
        # downloads
        (storage.MAX_REDIRECTS, 5, "5 redirects", ["threat-model"]),
        (storage.IDLE_SECONDS, 30, "30 s", ["threat-model", "bundles"]),
        (storage.MIN_BYTES_PER_SECOND, 1024, "1 KiB per second", ["threat-model"]),
        (storage.SLOW_SECONDS, 60, "60 s", ["threat-model"]),
        (download.MAX_BUNDLE_BYTES, 50 * GIB, "50 GiB", ["threat-model", "bundles"]),
        (paths.MIN_FREE_BYTES, MIB, "1 MiB", ["bundles"]),
        # archives
        (limits.MAX_ENTRIES, 250_000, "250,000 files and folders", ["threat-model", "bundles"]),
        (limits.MAX_UNPACKED_BYTES, 20 * GIB, "20 GiB", ["threat-model", "bundles"]),
        (limits.MAX_RESERVED_BYTES, GIB, "1 GiB", ["threat-model", "bundles"]),
        (limits.MAX_RESERVED_INODES, 10_000, "10,000", ["bundles"]),
        (names.MAX_NAME_BYTES, 1024, "1,024 bytes", ["bundles"]),
        (symlinks.MAX_LINKS, 10_000, "10,000 symbolic links", ["threat-model", "bundles"]),
        (codecs.XZ_MEMORY_BYTES, 80 * MIB, "64 MiB", ["threat-model"]),
        (codecs.MAX_STREAMS, 1_000_000, "1,000,000", ["threat-model"]),
        (tar.MAX_EXTENSION_BYTES, MIB, "1 MiB", ["threat-model"]),
        (tar.MAX_RECORDS, 1000, "1,000 records", ["threat-model"]),
        (tar.MAX_TOTAL_RECORDS, 5_000_000, "5,000,000 records", ["threat-model"]),
        # results
        (staging.FILE_MODE, 0o644, "0644", ["threat-model", "bundles"]),
        (staging.FOLDER_MODE, 0o755, "0755", ["threat-model", "bundles"]),
        (staging.ABANDONED_SECONDS, 24 * 3600, "a day", ["threat-model", "bundles"]),
        (outputs.MAX_JOB_OUTPUT_BYTES, MIB, "1 MB", ["many-domains"]),
        (outputs.MAX_VARIABLE_BYTES, 128 * 1024, "128 KiB", ["many-domains"]),
        # several domains
        (validators.MAX_PARALLEL, 100, "100", ["many-domains"]),
        (validators.MAX_PARALLEL, 100, "1 to 100", ["reference"]),
        (DEFAULTS["max-parallel"], "10", "10", ["many-domains", "reference"]),
        (failures.MAX_DETAILED_FAILURES, 9, "9 domains", ["many-domains"]),
        # secrets and foreign texts
        (text.MAX_FOREIGN_TEXT_LENGTH, 1000, "1,000 characters", ["threat-model"]),
        (redaction.MIN_RUN_LENGTH, 16, "16 consecutive characters", ["threat-model"]),
        (redaction.MIN_SECRET_LENGTH, 8, "8 characters", ["threat-model"]),
        (redaction.MIN_SECRET_LENGTH, 8, "8 or more characters", ["threat-model"]),
        (signed_links.MIN_RANDOM_SECRET_LENGTH, 16, "16 characters or more", ["threat-model", "../SECURITY"]),
    ],
)
def test_numbers_are_those_of_the_code(of_the_code: object, number: object, written: str, pages: list[str]) -> None:
    assert of_the_code == number
    assert [page for page in pages if not re.search(rf"\b{re.escape(written)}\b", flowing(f"docs/{page}.md"))] == []


@pytest.mark.parametrize("page", ["docs/threat-model.md", "docs/how-it-waits.md", "SECURITY.md"])
def test_the_base_image_is_that_of_the_dockerfile(page: str) -> None:
    used = {*re.findall(r"(?m)^FROM (\S+)", (ROOT / "Dockerfile").read_text("utf-8"))}

    assert {*re.findall(r"`(python:[^`]+)`", flowing(page))} == used
