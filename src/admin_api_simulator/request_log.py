"""One line for each request.

It has the time, method, path, status, and the milliseconds until the response began.
"""

import logging
import time
from typing import Final, TextIO
from urllib.parse import quote, unquote

# what a path contains beside letters, digits and `-._` (RFC 3986, section 3.3)
SAFE: Final = "/%:@!$&'()*+,;=~"
LONGEST_PATH: Final = 200

_LOG: Final = logging.getLogger(__name__)


def log_request(method: str, path: str, status: int | None, *, seconds: float, key: str) -> None:
    """Log a request without the key.

    `path` may have a query; `status` is None if no response was sent.
    """
    shown = "-" if status is None else status
    _LOG.info("%-4s  %s  %s  %.0f ms", method, cleaned(path, key=key), shown, 1000 * seconds)


def write_requests(out: TextIO) -> None:
    """Write the requests from now on to `out`."""
    formatter = logging.Formatter("%(asctime)s  %(message)s", datefmt="%H:%M:%S UTC")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
    _LOG.propagate = False


def cleaned(path: str, *, key: str) -> str:
    """Return a path without its query and the key.

    Characters that a terminal or a workflow's log would interpret are encoded.
    """
    shown = quote(path.partition("?")[0], safe=SAFE, errors="replace")
    if key and key in unquote(shown):
        return "…"
    if len(shown) <= LONGEST_PATH:
        return shown
    return f"{shown[:LONGEST_PATH]}…"
