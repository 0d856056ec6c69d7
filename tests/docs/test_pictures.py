"""The pictures of job summaries show today's summary, and Mermaid draws its timeline.

GitHub uses Mermaid, too.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from docs.pictures import make
from docs.pictures.runs import SCENES, digest_line
from docs_platform_action.job import RUN
from docs_platform_action.report.timeline import timeline_of
from tests.engine import skip_or_fail
from tests.gfm import diagrams, page_of
from tests.unit.report.test_summary import NOW, cancelled, failed, good, phases
from tests.virtual_time import NOON

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs/pictures"
SPANS = (1, 2.9, 7, 59, 61, 3599, 50_000, 86_400, 35 * 86_400)
RUNS = {
    "three": [good(), failed(), cancelled()],
    "many": [good(f"d{number}.example.com", run=60.0 + number) for number in range(1000)],
    "ports": [
        good("docs.example.com:8443"),
        good("xn--bcher-kva.example"),
        good("1.example"),
        good("x" * 200),
    ],
    **{f"{span} s": [good(phases=phases(NOW - span, **{RUN: span}))] for span in SPANS},
}


def test_the_pictures_show_what_runs_show_today() -> None:
    digests = "".join(digest_line(name) for name in SCENES)

    assert make.DIGESTS.read_text("utf-8") == digests, "run `make pictures`"


def test_each_picture_is_there_in_light_and_dark() -> None:
    expected = set()
    for name in SCENES:
        expected |= {f"{name}-{scheme}.png" for scheme in make.SCHEMES}

    assert {file.name for file in PICTURES.glob("*.png")} == expected


def test_mermaid_draws_the_timeline_of_every_run() -> None:
    node = Path(sys.executable).with_name("node")
    if not node.exists() or not (ROOT / "tests" / "node_modules" / "mermaid").exists():
        skip_or_fail("Tests of diagrams need Node and Mermaid, which `make installed` installs.")
    texts = []
    for jobs in RUNS.values():
        timeline = timeline_of(jobs, now=NOON, monotonic=NOW)
        texts.append(diagrams(page_of(timeline))[0])

    done = subprocess.run(
        [node, Path(__file__).with_name("read_diagrams.mjs")],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TZ": "Pacific/Auckland"},  # far from UTC
    )

    read: list[dict[str, Any]] = json.loads(done.stdout)
    for name, text, found in zip(RUNS, texts, read, strict=True):
        assert "error" not in found, (name, found)
        assert found["type"] == "gantt"
        assert len(text) < found["longestText"]
    assert read[0]["sections"] == [job.domain for job in RUNS["three"]]
