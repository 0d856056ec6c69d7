"""One line for each request: time, method, path, status, and the milliseconds until the response began."""

import logging
import time
from typing import Final, TextIO
from urllib.parse import quote

SAFE: Final = "/%:@!$&'()*+,;=~"  # what a path contains beside letters, digits and `-._` (RFC 3986, section 3.3)
LONGEST_PATH: Final = 200

_LOG: Final = logging.getLogger(__name__)


def log_request(method: str, path: str, status: int | None, *, seconds: float) -> None:
    """Log a request. `path` may have a query; `status` is None if no response was sent."""
    _LOG.info("%-4s  %s  %s  %.0f ms", method, cleaned(path), "-" if status is None else status, 1000 * seconds)


def write_requests(out: TextIO, *, key: str) -> None:
    """Write the requests from now on to `out`, without the key."""
    handler = logging.StreamHandler(out)
    handler.setFormatter(_WithoutKey(key))
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
    _LOG.propagate = False


def cleaned(path: str) -> str:
    """Return a path without its query, and without characters that a terminal or a workflow's log would interpret."""
    quoted = quote(path.partition("?")[0], safe=SAFE, errors="replace")
    return quoted if len(quoted) <= LONGEST_PATH else f"{quoted[:LONGEST_PATH]}…"


class _WithoutKey(logging.Formatter):
    """Formats a line with its time in UTC, and replaces the key."""

    def __init__(self, key: str) -> None:
        super().__init__("%(asctime)s  %(message)s", datefmt="%H:%M:%S UTC")
        self.converter = time.gmtime
        self._keys = {quote(key, safe=safe) for safe in ("", SAFE)} - {""}

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = super().format(record)
        for key in self._keys:
            line = line.replace(key, "***")
        return line
