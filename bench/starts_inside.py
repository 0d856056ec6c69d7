"""startup.py runs this in a container: starts Python in turns with several programs, and measures imports with `-X importtime`.

Reads its instructions as JSON from its argument, and writes the measurements as JSON to stdout. Uses only the standard library.
"""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

REFUSAL = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def main() -> None:
    """Run the instructions."""
    instructions = json.loads(sys.argv[1])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        os.environ["INPUT_BASE-URL"] = f"http://127.0.0.1:{listener.getsockname()[1]}"
        programs = instructions["programs"].items()
        starts = [{name: processor_time(listener, program) for name, program in programs} for _ in range(instructions["starts"])]
    imports = [{name: imported(code) for name, code in instructions["codes"].items()} for _ in range(instructions["imports"])]
    json.dump({"starts": starts, "imports": imports}, sys.stdout)


def processor_time(listener: socket.socket, program: list[str]) -> int:
    """Start Python with these arguments, and return its processor time in nanoseconds until its first request."""
    child = subprocess.Popen([sys.executable, *program], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # noqa: S603  # our own
    connection, _ = listener.accept()
    with connection:
        connection.recv(1)
        used = sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{child.pid}/task").glob("*/schedstat"))
        connection.recv(65536)
        connection.sendall(REFUSAL)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
    child.wait()
    return used


def imported(code: str) -> dict[str, int]:
    """Return the microseconds of each module that code imports, without nested imports."""
    command = [sys.executable, "-I", "-X", "importtime", "-c", code]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=True)  # noqa: S603  # our own
    found = re.findall(r"(?m)^import time: +([0-9]+) \| +[0-9]+ \| +(\S+)$", done.stderr)
    return {name: int(microseconds) for microseconds, name in found}


main()
