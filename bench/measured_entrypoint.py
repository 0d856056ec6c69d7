"""Runs the action's entry point, and writes the process's highest resident set in KiB to the file `PEAK_MEMORY_FILE` names.

In the process itself, because what a parent is told of its child's peak may be that of the parent from before the child's program
began (source: getrusage(2) and the kernel's `exec`, which keeps the highest of both).
"""

import os
import re
import runpy
import sys
from pathlib import Path

try:
    runpy.run_path(str(Path(__file__).parents[1] / "entrypoint.py"), run_name="__main__")
except SystemExit as ended:
    found = re.search(r"^VmHWM:\s+([0-9]+) kB$", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    if found is not None:
        Path(os.environ["PEAK_MEMORY_FILE"]).write_text(found[1], encoding="ascii")
    sys.exit(ended.code)
