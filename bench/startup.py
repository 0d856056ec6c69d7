"""From a container's start to its first request, beside a bare container with `requests` alone: `python bench/startup.py`.

Both images are built on the base that the Dockerfile names, but with any byte code taken out of it: the public Python image has
none. The bare one has `requests` and what it needs, in the locked versions and installed and compiled in the same manner, and
runs `one_request.py`. In turns each is started with the command line of GitHub's runner, and a server on this machine takes the
time when the request's first byte comes, on the clock by which the command was started (CLOCK_MONOTONIC). It refuses the request,
and the container ends.

In a container of the action's image the same is done once more without the engine, whose own time varies (`starts_inside.py`):
Python is started in turns with `one_request.py` and with the action, and the processor time that its threads have used when the
request comes is read from `schedstat` (proc(5), in nanoseconds). There `-X importtime` tells, too, what each import takes.

Ends with 3 when the action takes more than `MAX_MILLISECONDS` longer.
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
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import certifi
import trustme

from admin_api_simulator.runner import variable_of

sys.path.insert(0, str(Path(__file__).parents[1]))  # containers are built and started as for the tests

from tests.container.runner import Runner
from tests.container.stripped_base import base_of, built_on, stripped
from tests.engine import ROOT, copy_action, docker, temporary_tag

MAX_MILLISECONDS: Final = 60.0
MISSED: Final = 3
"""What a benchmark ends with when a goal is missed; 1 is a fault of its own (`page.py`)."""
ROUNDS: Final = 20
STARTS: Final = 40
IMPORTS: Final = 15
LARGEST: Final = 10
MAX_SECONDS: Final = 120.0
NEEDED: Final = ("certifi", "charset-normalizer", "idna", "requests", "urllib3")
"""What pip installs for `requests`."""

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
COPY one_request.py /opt/action/
RUN /opt/action/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/action/lib
FROM {base}
COPY --from=build /opt/action /opt/action
RUN ["/opt/action/bin/python", "-I", "-c", "\\
import contextlib, requests\\n\\
with contextlib.suppress(OSError): requests.post('http://127.0.0.1:9', json={{}})"]
ENTRYPOINT ["/opt/action/bin/python", "-I", "-u", "/opt/action/one_request.py"]
"""
"""As the action's own image is made; the request that nobody answers leaves the byte code of all that one takes."""

TITLE: Final = "## From container start to the first request"
TEXT: Final = """
Beside a bare container that imports `requests` and sends one request, on the same base, installed and compiled in the same
manner. Each was started {rounds} times, in turns, with the command line of GitHub's runner, until the first byte of its request
reached a server on the same machine. The build of the image, before that, is not in it. Over https both read the public
certificate authorities and one more. The figures are medians, the second one of how much longer the action took than the bare
container just before; beside them what the fastest of either took. A machine that does other things as well makes all of it
longer. The goal: {most:.0f} ms more at most.
"""
INSIDE: Final = """
The same without the engine, in one container: {starts} starts of Python in turns. Processor time is that of all threads when the
request comes; on a machine that does other things as well it varies less.
"""
IMPORTED: Final = """
What the action imports beyond `requests` before that, each module by itself as `-X importtime` tells, which makes it slower than
it is: the least of {imports} times, as a share of what `requests` takes with all it imports.
"""
MEANING: Final = """
What is needed only after the first request is imported when it is needed: what delivers a bundle, reads an archive, writes YAML,
shows several jobs, writes the summary, waits for a job or tries again. Nothing searches for garbage while imports go on. What is
left beside `requests` is the action's own modules, and over http to read the certificate authorities all the same.
"""


class FirstBytes:
    """A server on loopback that tells when each connection's request begins to come, and refuses it. Over TLS with a context."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self._listener.getsockname()[1]}"
        self._came: SimpleQueue[float] = SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def wait(self) -> float:
        """Return when the next request came, on the monotonic clock."""
        return self._came.get(timeout=MAX_SECONDS)

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection:
                received = connection.recv(1)
                self._came.put(time.monotonic())
                while received and b"\r\n\r\n" not in received:
                    received += connection.recv(65536)
                length = re.search(rb"(?i)\r\ncontent-length: ([0-9]+)", received)
                while length and len(received.partition(b"\r\n\r\n")[2]) < int(length[1]):
                    received += connection.recv(65536)
                connection.sendall(REFUSAL)


def main() -> int:
    """Measure both containers and what is inside, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="starts of each container")
    options = parser.parse_args()
    try:
        docker("version")
    except (AssertionError, OSError) as error:
        raise SystemExit(f"this needs a container engine: {error}") from error
    with tempfile.TemporaryDirectory(prefix="startup-") as name, images(Path(name)) as (bare, action):
        waits = {
            "over http": measure(bare, action, options.rounds),
            "over https": measure(bare, action, options.rounds, trustme.CA()),
        }
        inside = look_inside(action)
    return report(waits, inside, options.rounds)


@contextmanager
def images(folder: Path) -> Iterator[tuple[str, str]]:
    """Build the bare image and the action's."""
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
    """Start both containers in turns; return the seconds to each pair's first requests. With an authority over TLS."""
    context = None
    if authority is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
    server = FirstBytes(context)
    return [(first_request(bare, server, authority), first_request(action, server, authority)) for _ in range(rounds)]


def first_request(image: str, server: FirstBytes, authority: trustme.CA | None) -> float:
    """Start a container as the runner does; return the seconds until its first request came."""
    with tempfile.TemporaryDirectory(prefix="startup-") as name:
        folder, logs = Path(name, "job"), Path(name, "logs")
        folder.mkdir()
        logs.mkdir()
        runner = Runner(image=image, folder=folder, logs=logs)
        inputs, env = {**INPUTS, "base-url": server.url}, {}
        if authority is not None:
            pem = authority.cert_pem.bytes()
            (runner.workspace / "authority.pem").write_bytes(pem)
            (runner.workspace / "trusted.pem").write_bytes(Path(certifi.where()).read_bytes() + pem)
            inputs["ca-bundle"], env["TRUSTED"] = "authority.pem", "trusted.pem"
        began = time.monotonic()
        step = runner.start(inputs, env=env)
        took = server.wait() - began
        step.wait()
    return took


def look_inside(action: str) -> dict[str, Any]:
    """Measure in one container of the action's image what `starts_inside.py` does."""
    ours = "import gc; gc.disable(); import docs_platform_action.signals, docs_platform_action.main"
    asked = {
        "programs": {"bare": ["-I", "-u", "-c", ONE_REQUEST.read_text()], "action": ["-I", "-u", "/opt/action/entrypoint.py"]},
        "starts": STARTS,
        "codes": {"bare": "import gc; gc.disable(); import requests", "action": ours},
        "imports": IMPORTS,
    }
    env = [argument for name, value in INPUTS.items() for argument in ("--env", f"{variable_of(name)}={value}")]
    with INSIDE_PROGRAM.open("rb") as program:
        told = docker(
            *("run", "--rm", "--interactive", "--network=host", "--workdir", "/tmp", *env),  # noqa: S108  # the container's own
            *("--entrypoint", PYTHON, action, "-I", "-", json.dumps(asked)),
            timeout_seconds=MAX_SECONDS,
            stdin=program,
        )
    found: dict[str, Any] = json.loads(told)
    return found


def report(waits: Mapping[str, list[tuple[float, float]]], inside: Mapping[str, Any], rounds: int) -> int:
    """Write the section; return whether the goal is missed."""
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
    out += table(("container", "beside the bare one", "more", "of the goal", "fastest, more"), rows)
    out += [INSIDE.format(starts=STARTS)]
    bare, ours = ([start[name] / 1e6 for start in inside["starts"]] for name in ("bare", "action"))
    rows = [
        (what, f"{of(ours) / of(bare):.2f}", f"{of(ours) - of(bare):.0f} ms", f"{(of(ours) - of(bare)) / MAX_MILLISECONDS:.0%}")
        for what, of in (("median", statistics.median), ("least", min))
    ]
    out += table(("processor time", "beside the bare program", "more", "of the goal"), rows)
    out += [IMPORTED.format(imports=IMPORTS)]
    out += table(("imported", "modules", "beside all of `requests`"), further_imports(inside["imports"]))
    out += [MEANING]
    beyond = {scheme: more - MAX_MILLISECONDS for scheme, more in differences.items() if more > MAX_MILLISECONDS}
    missed = ", ".join(f"{scheme} by {more:.0f} ms" for scheme, more in beyond.items())
    out += [f"The goal is missed: {missed}." if missed else "The goal is met."]
    sys.stdout.write("\n".join(out) + "\n")
    return MISSED if missed else 0


def further_imports(rounds: Sequence[Mapping[str, Mapping[str, int]]]) -> list[tuple[str, ...]]:
    """Sum up by package what the action imports and `requests` does not."""
    bare = {name: min(taken["bare"].get(name, 0) for taken in rounds) for name in rounds[0]["bare"]}
    least = {name: min(taken["action"].get(name, 0) for taken in rounds) for name in rounds[0]["action"] if name not in bare}
    packages: defaultdict[str, list[int]] = defaultdict(list)
    for name, microseconds in least.items():
        packages[name.partition(".")[0]].append(microseconds)
    packages["all of it"] = list(least.values())
    largest = sorted(packages.items(), key=lambda item: -sum(item[1]))[: LARGEST + 1]
    return [(name, str(len(taken)), f"{sum(taken) / sum(bare.values()):.1%}") for name, taken in largest]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Draw a table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


if __name__ == "__main__":
    sys.exit(main())
