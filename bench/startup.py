"""From a container's start to its first request, compared with a bare container with only `requests`: `python bench/startup.py`.

Both images are built on the base that the Dockerfile names, but without byte code, like the public Python image. The bare one has
`requests` and its dependencies, in the locked versions and installed and compiled in the same way, and `one_request.py` as its
entry point. They are started in turns with the command line of GitHub's runner, and a server on this machine records when the
request's first byte arrives, on the clock of the start (CLOCK_MONOTONIC). The server rejects the request, and the container ends.

The same is measured in a container of the action's image without the engine, whose time varies (`starts_inside.py`): Python is
started in turns with `one_request.py` and with the action, and the processor time of its threads until the request is read from
`schedstat` (proc(5), in nanoseconds). `-X importtime` measures the imports there.

Exits with 3 if the action takes more than `MAX_MILLISECONDS` longer.
"""

import argparse
import json
import re
import socket
import ssl
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

import certifi
import trustme

from admin_api_simulator.runner import variable_of

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests have the helpers for containers

from bench.needs import need_engine
from bench.stripped_base import base_of, built_on, stripped

from tests.container.runner import Runner, Step
from tests.engine import ROOT, copy_action, docker, temporary_tag

MAX_MILLISECONDS: Final = 120.0
MISSED: Final = 3
"""The exit code for a missed goal; 1 is an error of the benchmark (`page.py`)."""
ROUNDS: Final = 20
STARTS: Final = 40
IMPORTS: Final = 15
LARGEST: Final = 10
MAX_SECONDS: Final = 120.0
CHECK_SECONDS: Final = 0.5
"""How often a wait for a request checks whether the container still runs."""
NEEDED: Final = ("certifi", "charset-normalizer", "idna", "requests", "urllib3")
"""The distributions that `requests` needs."""

ONE_REQUEST: Final = Path(__file__).with_name("one_request.py")
INSIDE_PROGRAM: Final = Path(__file__).with_name("starts_inside.py")
PYTHON: Final = "/opt/action/bin/python"
REFUSAL: Final = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
INPUTS: Final = {"admin-key": "key-of-the-benchmark", "domain": "docs.example.com"}
BARE: Final = """
FROM {base} AS build
RUN python -m venv --without-pip /opt/action
COPY requirements.txt /build/
RUN python -m pip --python /opt/action install --no-compile --require-hashes --no-deps --only-binary :all: \\
        --requirement /build/requirements.txt
COPY one_request.py /opt/action/entrypoint.py
RUN /opt/action/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/action/lib
FROM {base}
COPY --from=build /opt/action /opt/action
RUN ["/opt/action/bin/python", "-I", "-c", "\\
import contextlib, requests\\n\\
with contextlib.suppress(OSError): requests.post('http://127.0.0.1:9', json={{}})"]
"""
"""Like the action's image; the request without a listener compiles every module that a request needs.

The program has the path of the action's entry point, which the runner passes to `docker run` (`action.yml`).
"""

TITLE: Final = "## From container start to the first request"
TEXT: Final = """
Compared with a bare container that imports `requests` and sends one request, on the same base, installed and compiled in the same
way. Each was started {rounds} times, in turns, with the command line of GitHub's runner, until the first byte of its request
reached a server on the same machine. Building the image is not included. Over https both load the public certificate authorities
and one more. The figures are medians; the difference is to the bare container started just before. The last column compares the
fastest starts. Other load on the machine increases all figures. The goal: at most {most:.0f} ms more.
"""
INSIDE: Final = """
The same without the engine, in one container: {starts} starts of Python in turns. Processor time is that of all threads until the
request is sent; it varies less under other load.
"""
IMPORTED: Final = """
Modules that the action imports before its first request in addition to `requests`, measured with `-X importtime`, which slows
imports down: the minimum of {imports} runs, as a share of the time of `requests` with all its imports.
"""
MEANING: Final = """
Only the YAML library is imported later, because most runs do not need it. The remaining time is that of the action's own modules,
and over http also of loading the certificate authorities.
"""


class FirstBytes:
    """A loopback server that records when each request starts to arrive, and rejects it. Uses TLS with a context."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self._listener.getsockname()[1]}"
        self._arrivals: SimpleQueue[float] = SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def wait(self, step: Step) -> float:
        """Return when the next request arrived, on the monotonic clock. Exits with the log if the container sends none."""
        deadline = time.monotonic() + MAX_SECONDS
        while True:
            may_send = step.is_running() and time.monotonic() < deadline
            with suppress(Empty):
                return self._arrivals.get(timeout=CHECK_SECONDS)
            if not may_send:
                state = "still runs" if step.is_running() else "ended"
                raise SystemExit(f"the container {state} and has sent no request. Its log:\n{step.log()}")

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection:
                received = connection.recv(1)
                self._arrivals.put(time.monotonic())
                while received and b"\r\n\r\n" not in received:
                    received += connection.recv(65536)
                length = re.search(rb"(?i)\r\ncontent-length: ([0-9]+)", received)
                while length and len(received.partition(b"\r\n\r\n")[2]) < int(length[1]):
                    received += connection.recv(65536)
                connection.sendall(REFUSAL)


def main() -> int:
    """Measure both containers and the processor time inside, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="starts of each container")
    parser.add_argument("--starts", type=int, default=STARTS, metavar="N", help="starts of each program inside a container")
    parser.add_argument("--imports", type=int, default=IMPORTS, metavar="N", help="measurements of the imports of each program")
    options = parser.parse_args()
    need_engine()
    with tempfile.TemporaryDirectory(prefix="startup-") as name, images(Path(name)) as (bare, action):
        waits = {
            "over http": measure(bare, action, options.rounds),
            "over https": measure(bare, action, options.rounds, trustme.CA()),
        }
        inside = measure_inside(action, options.starts, options.imports)
    return report(waits, inside, options.rounds)


@contextmanager
def images(folder: Path) -> Iterator[tuple[str, str]]:
    """Build the bare image and the action's image."""
    for name in ("base", "bare"):
        (folder / name).mkdir()
    base = base_of((ROOT / "Dockerfile").read_text())
    lock = (ROOT / "requirements" / "image.txt").read_text()
    entries = re.findall(r"(?m)^([\w.-]+)(==\S+(?: \\\n +\S+)+)", lock)
    (folder / "bare" / "requirements.txt").write_text("".join(f"{name}{rest}\n" for name, rest in entries if name in NEEDED))
    (folder / "bare" / "one_request.py").write_text(ONE_REQUEST.read_text())
    (folder / "bare" / "Dockerfile").write_text(BARE.format(base=base))
    context = copy_action(folder / "action")
    with (
        stripped(base, folder / "base") as under,
        built_on(under, temporary_tag(), folder / "bare") as bare,
        built_on(under, temporary_tag(), context) as action,
    ):
        yield bare, action


def measure(bare: str, action: str, rounds: int, authority: trustme.CA | None = None) -> list[tuple[float, float]]:
    """Start both containers in turns, and return the seconds to the first requests of each pair. Uses TLS with an authority."""
    context = None
    if authority is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
    server = FirstBytes(context)
    return [(first_request(bare, server, authority), first_request(action, server, authority)) for _ in range(rounds)]


def first_request(image: str, server: FirstBytes, authority: trustme.CA | None) -> float:
    """Start a container like the runner, and return the seconds until its first request."""
    with tempfile.TemporaryDirectory(prefix="startup-") as name:
        runner = Runner(image=image, folder=Path(name))
        inputs, env = {**INPUTS, "base-url": server.url}, {}
        if authority is not None:
            pem = authority.cert_pem.bytes()
            (runner.workspace / "authority.pem").write_bytes(pem)
            (runner.workspace / "trusted.pem").write_bytes(Path(certifi.where()).read_bytes() + pem)
            inputs["ca-bundle"], env["TRUSTED"] = "authority.pem", "trusted.pem"
        try:
            began = time.monotonic()
            step = runner.start(inputs, env=env)
            took = server.wait(step) - began
            step.wait()
        finally:
            runner.clean_up()
    return took


def measure_inside(action: str, starts: int, imports: int) -> dict[str, Any]:
    """Run `starts_inside.py` in a container of the action's image, and return its measurements."""
    ours = "import docs_platform_action.signals, docs_platform_action.main"
    instructions = {
        "programs": {"bare": ["-I", "-u", "-c", ONE_REQUEST.read_text()], "action": ["-I", "-u", "/opt/action/entrypoint.py"]},
        "starts": starts,
        "codes": {"bare": "import requests", "action": ours},
        "imports": imports,
    }
    env = [argument for name, value in INPUTS.items() for argument in ("--env", f"{variable_of(name)}={value}")]
    with INSIDE_PROGRAM.open("rb") as program:
        output = docker(
            *("run", "--rm", "--interactive", "--network=host", "--workdir", "/tmp", *env),  # noqa: S108  # the container's own
            *("--entrypoint", PYTHON, action, "-I", "-", json.dumps(instructions)),
            timeout_seconds=MAX_SECONDS,
            stdin=program,
        )
    found: dict[str, Any] = json.loads(output)
    return found


def report(waits: Mapping[str, list[tuple[float, float]]], inside: Mapping[str, Any], rounds: int) -> int:
    """Write the section, and return the exit code."""
    out = [TITLE, TEXT.format(rounds=rounds, most=MAX_MILLISECONDS)]
    differences = {scheme: 1000 * statistics.median(ours - bare for bare, ours in pairs) for scheme, pairs in waits.items()}
    rows = [
        (
            scheme,
            f"{statistics.median(ours for _, ours in pairs) / statistics.median(bare for bare, _ in pairs):.2f}",
            f"{differences[scheme]:.0f} ms",
            f"{differences[scheme] / MAX_MILLISECONDS:.0%}",
            f"{1000 * (min(ours for _, ours in pairs) - min(bare for bare, _ in pairs)):.0f} ms",
        )
        for scheme, pairs in waits.items()
    ]
    out += table(("container", "ratio to the bare one", "difference", "share of the goal", "difference of the fastest"), rows)
    out += [INSIDE.format(starts=len(inside["starts"]))]
    bare, ours = ([start[name] / 1e6 for start in inside["starts"]] for name in ("bare", "action"))
    rows = [
        (what, f"{of(ours) / of(bare):.2f}", f"{of(ours) - of(bare):.0f} ms", f"{(of(ours) - of(bare)) / MAX_MILLISECONDS:.0%}")
        for what, of in (("median", statistics.median), ("minimum", min))
    ]
    out += table(("processor time", "ratio to the bare program", "difference", "share of the goal"), rows)
    out += [IMPORTED.format(imports=len(inside["imports"]))]
    out += table(("package", "modules", "share of `requests`"), further_imports(inside["imports"]))
    out += [MEANING]
    beyond = {scheme: more - MAX_MILLISECONDS for scheme, more in differences.items() if more > MAX_MILLISECONDS}
    missed = ", ".join(f"{scheme} by {more:.0f} ms" for scheme, more in beyond.items())
    out += [f"The goal is missed: {missed}." if missed else "The goal is met."]
    sys.stdout.write("\n".join(out) + "\n")
    return MISSED if missed else 0


def further_imports(rounds: Sequence[Mapping[str, Mapping[str, int]]]) -> list[tuple[str, ...]]:
    """Return the import times by package of modules that the action imports but `requests` does not."""
    bare = {name: min(taken["bare"].get(name, 0) for taken in rounds) for name in rounds[0]["bare"]}
    least = {name: min(taken["action"].get(name, 0) for taken in rounds) for name in rounds[0]["action"] if name not in bare}
    packages: defaultdict[str, list[int]] = defaultdict(list)
    for name, microseconds in least.items():
        packages[name.partition(".")[0]].append(microseconds)
    packages["total"] = list(least.values())
    largest = sorted(packages.items(), key=lambda item: -sum(item[1]))[: LARGEST + 1]
    return [(name, str(len(taken)), f"{sum(taken) / sum(bare.values()):.1%}") for name, taken in largest]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


if __name__ == "__main__":
    sys.exit(main())
