"""A process that is killed during its delivery leaves results that are whole, or none.

The moment is random.
"""

import os
import random
import re
import signal
import time
from typing import Final

import pytest
import yaml

from admin_api_simulator import Simulator
from tests.action import Action
from tests.archives import Site, tar
from tests.ended import ended_of
from tests.folders import read_tree

SITE: Final = Site(files={f"guide/{page}.html": b"<h1>Page</h1>" * 20 for page in range(1500)})
ARCHIVE: Final = tar(Site(files={**SITE.files, "search.bin": os.urandom(500_000)}))
INPUTS: Final = {
    "mode": "collect",
    "job_id": "export-finished",
    "bundle_path": "bundle.tar",
    "site_path": "site",
    "values_file": "values.yaml",
}
PART: Final = re.compile(r"\.[^/]+\.part(/|$)")


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name
)
@pytest.mark.parametrize("seed", range(6))
def test_what_is_left_is_whole(
    action: Action, platform: Simulator, seed: int, number: signal.Signals
) -> None:
    platform.put_bundle("export-finished", ARCHIVE)

    delay_seconds = random.Random(f"{seed} {number}").uniform(0.0, 0.6)  # noqa: S311  # no secret

    with action.start(platform, **INPUTS) as running:
        while not platform.count("download"):
            time.sleep(0.001)
        time.sleep(delay_seconds)
        running.send_signal(number)
        ended = ended_of(running.collect())

    left = read_tree(action.workspace)
    published = {path: node for path, node in left.items() if not PART.search(path)}
    has_ended_before_the_signal = ended.exit_code == 0
    assert has_ended_before_the_signal or ended.exit_code in {-signal.SIGKILL, 128 + number}
    assert number is signal.SIGKILL or published == left, "a temporary file is left"
    pages = [path for path, node in published.items() if path.startswith("site/") and node]
    assert len(pages) in {0, len(SITE.files) + 1}
    assert published.get("bundle.tar", ARCHIVE) == ARCHIVE
    if "values.yaml" in published:
        values = yaml.safe_load((action.workspace / "values.yaml").read_text())
        assert values["staticExport"]["bundleUrl"]
    assert "bundle.tar" in published or "bundlePath" not in ended.outputs
    assert "site" in published or "sitePath" not in ended.outputs
    assert "values.yaml" in published or "valuesFile" not in ended.outputs
