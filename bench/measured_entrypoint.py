"""Runs the action's entry point, and records the process's highest resident set in KiB.

The environment variable `PEAK_MEMORY_FILE` names the file to write. The process measures itself,
because a child's peak as reported to its parent includes the parent's memory from before `exec`
(source: getrusage(2) and the kernel's `exec`).
"""

import os
import re
import runpy
import sys
from pathlib import Path

try:
    runpy.run_path(str(Path(__file__).parents[1] / "entrypoint.py"), run_name="__main__")
except SystemExit as ended:
    found = re.search(
        r"^VmHWM:\s+([0-9]+) kB$",
        Path("/proc/self/status").read_text(encoding="ascii"),
        re.MULTILINE,
    )
    if found is not None:
        Path(os.environ["PEAK_MEMORY_FILE"]).write_text(found[1], encoding="ascii")
    sys.exit(ended.code)
