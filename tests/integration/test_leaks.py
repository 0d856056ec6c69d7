"""The key is nowhere but where it belongs: whoever echoes it, wherever and however, and whatever goes wrong meanwhile.

What a run leaves is searched by a fixture of all tests; here runs are brought about in which there is something to find.
"""

import base64

import pytest

from admin_api_simulator import Fault, Simulator
from tests.action import Action
from tests.keys import ADMIN_KEY
from tests.leaks import leaked


@pytest.mark.parametrize("before", ["", ":", "u:"])
def test_a_key_that_the_api_echoes_in_base64_is_shown_nowhere(action: Action, platform: Simulator, before: str) -> None:
    echo = base64.b64encode(f"{before}{ADMIN_KEY}:".encode()).decode()
    platform.script("read_export", Fault(status=403, json={"error": f"Basic {echo}"}))

    ended = action.run(platform, job_id="export-finished")

    assert 'said: "Basic ' in ended.error
    shown = "".join([ended.stdout.replace(f"::add-mask::{ADMIN_KEY}\n", "", 1), ended.summary, *ended.outputs.values()])
    assert leaked(ADMIN_KEY, shown) == []
