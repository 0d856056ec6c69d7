"""Debug logging reports every request, but not its content."""

import re

from admin_api_simulator import Fault, Simulator
from tests.action import Action
from tests.ended import Ended
from tests.keys import ADMIN_KEY

LINE = re.compile(r"(?P<method>GET|POST) (?P<path>/v1/\S+): (?P<outcome>.+), \d+ ms(?:, request id (?P<id>.+))?")


def debug_lines(ended: Ended) -> list[str]:
    return [command.value for command in ended.commands if command.name == "debug"]


def test_every_request_has_a_line(action: Action, platform: Simulator) -> None:
    running = Fault(json={"status": "running"})
    platform.script("read_export", Fault(status=502), running, Fault(cut="before_response"), None)
    action.debug = True
    action.set_constants(http__retry__MAX_PAUSE_SECONDS=0.1)

    ended = action.run(platform, job_id="export-finished", outage_tolerance="1m")

    matches = [match for line in debug_lines(ended) if (match := LINE.fullmatch(line))]
    assert [(match["method"], match["path"]) for match in matches] == [
        (request.method, request.path) for request in platform.requests
    ]
    assert [match["outcome"] for match in matches] == [
        "502",
        "200",
        f"The connection to {platform.base_url.removeprefix('http://')} was lost before the response was complete",
        "200",
        "200",
    ]
    assert [match["id"] is not None for match in matches] == [False, False, False, True, True]


def test_no_line_holds_a_header_or_a_body(action: Action, platform: Simulator) -> None:
    platform.script("read_export", Fault(json={"status": "running", "note": "body-word"}, headers={"X-Note": "header-word"}))
    action.debug = True

    ended = action.export(platform, start_options='{"note": "sent-word"}')

    assert ended.exit_code == 0
    shown = "\n".join(debug_lines(ended))
    for word in (ADMIN_KEY, "Bearer", "Authorization", "body-word", "header-word", "sent-word", "X-Amz-Signature"):
        assert word not in shown


def test_without_debug_logging_there_are_no_such_lines(action: Action, platform: Simulator) -> None:
    assert action.run(platform, job_id="export-finished").commands == []
