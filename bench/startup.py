"""Measures the time from a container's start to its first request: `python -m bench.startup`.

The action's image is built on a base without byte code, like the public Python image. The bare
image is the same, but its entry point imports `requests` and sends one request. Both are started in
turns with the command line of GitHub's runner, until the request reaches a server on this machine.
The server rejects the request, and the container ends.
"""

import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from bench.common import exit_without, need_programs, options_of, table, write_section

from tests.container.runner import Runner
from tests.engine import build_image, copy_action, remove_image, temporary_tag

MAX_MILLISECONDS: Final = 120.0
ROUNDS: Final = 20
MAX_SECONDS: Final = 120.0
FINAL_STAGE: Final = re.compile(r"^FROM \S+$", re.MULTILINE)
"""The `FROM` of the final stage; the build stage has a name."""

BARE: Final = """
FROM {action}
COPY entrypoint.py /opt/action/
RUN ["/opt/action/bin/python", "-I", "/opt/action/entrypoint.py"]
"""
ONE_REQUEST: Final = """
import contextlib, os, requests

# during the build nothing listens; the request compiles the modules that it needs
with contextlib.suppress(requests.ConnectionError):
    requests.post(
        os.environ.get("INPUT_BASE-URL", "http://127.0.0.1:9"),
        json={"domain": os.environ.get("INPUT_DOMAIN")},
        headers={"Authorization": f"Bearer {os.environ.get('INPUT_ADMIN-KEY')}"},
        timeout=60,
    )
"""


def main() -> int:
    """Start both containers in turns, and write the section."""
    options = options_of(__doc__).parse_args()
    need_programs("docker")
    answered = subprocess.run(
        ["docker", "version"],  # noqa: S607  # on PATH
        capture_output=True,
        timeout=60,
        check=False,
    )
    if answered.returncode != 0:
        exit_without("a container engine that responds")
    rounds = 1 if options.smallest else ROUNDS
    bare = []
    action = []
    with (
        tempfile.TemporaryDirectory(prefix="startup-") as folder,
        images(Path(folder)) as (bare_image, action_image),
    ):
        for _ in range(rounds):
            bare.append(milliseconds_to_first_request(bare_image))
            action.append(milliseconds_to_first_request(action_image))
    return report(bare, action)


def report(bare: list[float], action: list[float]) -> int:
    """Write the section about the milliseconds of both containers."""
    bare_median = statistics.median(bare)
    action_median = statistics.median(action)
    more = action_median - bare_median
    missed = []
    if more > MAX_MILLISECONDS:
        missed.append(f"{more:.0f} ms more in the median")
    return write_section(
        "## From container start to the first request",
        f"""
        Compared with a bare container that imports `requests` and sends one request. Each was
        started {len(bare)} times, in turns, with the command line of GitHub's runner, until its
        request reached a server on the same machine. Goal: in the median, at most
        {MAX_MILLISECONDS:.0f} ms more.
        """,
        table(
            "starts | bare container | action | difference | ratio",
            [
                row("median", bare_median, action_median),
                row("fastest", min(bare), min(action)),
            ],
        ),
        missed=missed,
    )


def row(name: str, bare: float, action: float) -> str:
    """Return a row that compares two times."""
    difference = f"{action - bare:.0f} ms"
    return f"{name} | {bare:.0f} ms | {action:.0f} ms | {difference} | {action / bare:.2f}"


@contextmanager
def images(folder: Path) -> Iterator[tuple[str, str]]:
    """Build the bare image and the action's image, on a base from which byte code is removed.

    Both are removed at the end.
    """
    base = temporary_tag()
    action = temporary_tag()
    bare = temporary_tag()
    context = copy_action(folder / "action")
    dockerfile = (context / "Dockerfile").read_text()
    (context / "Dockerfile").write_text(FINAL_STAGE.sub(f"FROM {base}", dockerfile))
    final_stage = FINAL_STAGE.findall(dockerfile)[0]
    without_byte_code = f"{final_stage}\nRUN find /usr -name '*.pyc' -delete\n"
    (folder / "base").mkdir()
    (folder / "base" / "Dockerfile").write_text(without_byte_code)
    (folder / "bare").mkdir()
    (folder / "bare" / "Dockerfile").write_text(BARE.format(action=action))
    (folder / "bare" / "entrypoint.py").write_text(ONE_REQUEST)
    try:
        build_image(base, folder / "base")
        build_image(action, context)
        build_image(bare, folder / "bare")
        yield bare, action
    finally:
        for tag in (bare, action, base):
            remove_image(tag)


def milliseconds_to_first_request(image: str) -> float:
    """Start a container like the runner, and return the milliseconds until its first request."""
    arrivals: SimpleQueue[float] = SimpleQueue()

    class Rejecting(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            arrivals.put(time.monotonic())
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_error(401)

        def log_message(self, *_: object) -> None:
            pass

    with (
        tempfile.TemporaryDirectory(prefix="startup-") as job,
        ThreadingHTTPServer(("127.0.0.1", 0), Rejecting) as server,
    ):
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        runner = Runner(image=image, folder=Path(job))
        inputs = {
            "base-url": f"http://127.0.0.1:{server.server_port}",
            "admin-key": "key-of-the-benchmark",
        }
        try:
            began = time.monotonic()
            step = runner.start(inputs | {"domain": "docs.example.com"})
            took = arrivals.get(timeout=MAX_SECONDS) - began
            step.wait()
        except Empty:
            raise SystemExit(f"the container sent no request. Its log:\n{step.log()}") from None
        finally:
            runner.clean_up()
            server.shutdown()
    return 1000 * took


if __name__ == "__main__":
    sys.exit(main())
