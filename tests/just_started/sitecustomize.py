"""Let `time.monotonic` begin at 60 in each process, as on a machine that was started a minute ago.

Python imports the module of this name when it starts, if `PYTHONPATH` has its folder.
"""

import time

_real = time.monotonic
_began_at = _real()
time.monotonic = lambda: _real() - _began_at + 60.0
