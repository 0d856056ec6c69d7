"""A container engine that shares nothing with the machine's engine, so that a benchmark can remove everything in it."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

CLIENT: Final = "/usr/bin/docker"
"""The client that Linux packages install. It can use BuildKit; a newer client without buildx, such as a static one, cannot."""
PROGRAMS: Final = ("dockerd", "unshare", CLIENT)
"""The programs that `own_engine` needs; it also needs the rights of root."""
START_SECONDS: Final = 60.0
MAX_SECONDS: Final = 600.0


class Engine:
    """A running engine."""

    def __init__(self, address: str) -> None:
        self._address = address

    def docker(self, *arguments: str, buildkit: bool = False) -> str:
        """Run a docker command and return its output. Exits with the output if it fails."""
        done = subprocess.run(  # noqa: S603  # the benchmark's own commands
            [CLIENT, "--host", self._address, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"DOCKER_BUILDKIT": str(int(buildkit))},
            text=True,
            timeout=MAX_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"docker {' '.join(arguments)}\n{done.stdout}")
        return done.stdout

    def clear(self) -> None:
        """Remove all images and all that a build keeps."""
        self.docker("system", "prune", "--all", "--force")


@contextmanager
def own_engine(folder: Path) -> Iterator[Engine]:
    """Start an engine with its files in a folder. Its containers have only the host's network."""
    address = f"unix://{folder}/docker.sock"
    options = {
        "data-root": folder / "data",
        "exec-root": folder / "exec",
        "pidfile": folder / "docker.pid",
        "host": address,
        "bridge": "none",
        "iptables": "false",
        "ip6tables": "false",
    }
    with (folder / "engine.log").open("wb") as log:
        # in its own namespace, so that no mount is left in the folder
        process = subprocess.Popen(  # noqa: S603  # the same
            ["unshare", "--mount", "dockerd", *(f"--{name}={value}" for name, value in options.items())],  # noqa: S607
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_until_ready(address, process, folder / "engine.log")
        yield Engine(address)
    finally:
        process.terminate()
        process.wait(timeout=START_SECONDS)


def _wait_until_ready(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    ask = [CLIENT, "--host", address, "version"]
    while subprocess.run(ask, capture_output=True, timeout=START_SECONDS, check=False).returncode != 0:  # noqa: S603  # the same
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the engine did not start:\n{log.read_text()}")
        time.sleep(0.2)
