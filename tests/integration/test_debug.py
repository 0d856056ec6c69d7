"""Debug logging reports every request, but not its content."""

import re

import pytest

from admin_api_simulator import Fault, Simulator
from tests.action import Action
from tests.ended import Ended
from tests.keys import ADMIN_KEY

LINE = re.compile(r"(?P<method>GET|POST) (?P<path>/v1/\S+): (?P<outcome>.+), \d+ ms(?:, request ID (?P<id>.+))?")


def debug_lines(ended: Ended) -> list[str]:
    return [command.value for command in ended.commands if command.name == "debug"]


def test_every_request_has_a_line(action: Action, platform: Simulator) -> None:
    running = Fault(json={"status": "running"})
    platform.script("read_export", Fault(status=502), running, Fault(cut="before_response"), None)
    action.debug = True
    action.set_constants(http__retry__MAX_PAUSE_SECONDS=0.1)

    ended = action.run(platform, mode="collect", job_id="export-finished", outage_tolerance="1m")

    matches = [match for line in debug_lines(ended) if (match := LINE.fullmatch(line))]
    assert [(match["method"], match["path"]) for match in matches] == [
        (request.method, request.path) for request in platform.requests
    ]
    outcomes = [match["outcome"] for match in matches]
    assert [outcome for outcome in outcomes if outcome.isdecimal()] == ["502", "200", "200", "200"]
    assert platform.base_url.removeprefix("http://") in outcomes[2]
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
    assert action.run(platform, mode="collect", job_id="export-finished").commands == []


ENDLESS_YEAR = f"session=1; expires=Wed, 09 Feb {'1' * 4400} 22:23:32 GMT"

NOISE = """
import logging, sys, threading, warnings

def make_noise(event, args):
    if event == "import" and args[0] == "requests":
        warnings.warn("a warning during the imports")
    if event == "socket.connect":
        warnings.warn("a warning of a library")
        logging.getLogger("library").critical("a message of a library")
        threading.Thread(target=lambda: 1 / 0).start()
        class Noisy:
            def __del__(self):
                raise OSError
        Noisy()

sys.addaudithook(make_noise)
"""


@pytest.mark.parametrize("debug", [False, True])
def test_an_unusual_cookie_is_harmless_and_not_shown(action: Action, platform: Simulator, debug: bool) -> None:
    for operation in ("start_export", "read_export", "make_bundle", "download"):
        platform.script(operation, Fault(headers={"Set-Cookie": ENDLESS_YEAR}))
    action.debug = debug

    with action.start(platform, domain="docs.example.com", bundle_path="bundle") as running:
        ended = running.wait()

    assert (ended.exit_code, ended.stderr) == (0, "")
    assert "Traceback" not in ended.stdout


@pytest.mark.parametrize("debug", [False, True])
def test_warnings_messages_and_traces_of_libraries_are_not_shown(action: Action, platform: Simulator, debug: bool) -> None:
    action.begin_with(NOISE)
    action.debug = debug

    with action.start(platform, mode="collect", job_id="export-finished", bundle_path="bundle") as running:
        ended = running.wait()

    assert ended.exit_code == 0
    shown = ended.stdout + ended.stderr
    for text in ("of a library", "during the imports", "Traceback", "Exception ignored", "File "):
        assert text not in shown
    assert "Warning: an unexpected ZeroDivisionError was ignored.\n" in ended.stderr
    assert "Warning: an unexpected OSError was ignored.\n" in ended.stderr
