"""Measures the time from a container's start to its first request: `python -m bench.startup`.

The action's image is built on a base without byte code, like the public Python image. The bare image is the same, but its entry
point imports `requests` and sends one request. Both are started in turns with the command line of GitHub's runner, until the
request reaches a server on this machine. The server rejects the request, and the container ends.
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
    with tempfile.TemporaryDirectory(prefix="startup-") as folder, images(Path(folder)) as pair:
        rounds = [
            [milliseconds_to_first_request(image) for image in pair]
            for _ in range(1 if options.smallest else ROUNDS)
        ]
    bare, action = zip(*rounds, strict=True)
    more = statistics.median(action) - statistics.median(bare)
    return write_section(
        "## From container start to the first request",
        f"""
        Compared with a bare container that imports `requests` and sends one request. Each was started {len(bare)} times, in
        turns, with the command line of GitHub's runner, until its request reached a server on the same machine. Goal: in the
        median, at most {MAX_MILLISECONDS:.0f} ms more.
        """,
        table(
            "starts | bare container | action | difference | ratio",
            [
                f"{name} | {of(bare):.0f} ms | {of(action):.0f} ms | {of(action) - of(bare):.0f} ms | {of(action) / of(bare):.2f}"
                for name, of in (("median", statistics.median), ("fastest", min))
            ],
        ),
        missed=[f"{more:.0f} ms more in the median"] if more > MAX_MILLISECONDS else [],
    )


@contextmanager
def images(folder: Path) -> Iterator[tuple[str, str]]:
    """Build the bare image and the action's image, on a base from which byte code is removed; remove them at the end."""
    base, action, bare = (temporary_tag() for _ in range(3))
    context = copy_action(folder / "action")
    dockerfile = (context / "Dockerfile").read_text()
    (context / "Dockerfile").write_text(FINAL_STAGE.sub(f"FROM {base}", dockerfile))
    for name, text in {
        "base": f"{FINAL_STAGE.findall(dockerfile)[0]}\nRUN find /usr -name '*.pyc' -delete\n",
        "bare": BARE.format(action=action),
    }.items():
        (folder / name).mkdir()
        (folder / name / "Dockerfile").write_text(text)
    (folder / "bare" / "entrypoint.py").write_text(ONE_REQUEST)
    try:
        for tag, built in {base: folder / "base", action: context, bare: folder / "bare"}.items():
            build_image(tag, built)
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
