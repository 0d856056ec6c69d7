"""The entry point of the container."""

import logging
import sys
import threading
import warnings

from docs_platform_action.clock import Clock
from docs_platform_action.signals import SignalHandler


def run() -> int:
    """Handle signals first: a cancel may come during the imports, which take a moment."""
    clock = Clock()
    signal_handler = SignalHandler(clock)
    _silence_libraries()
    from docs_platform_action.main import main

    return main(signal_handler, clock)


def _silence_libraries() -> None:
    """Keep texts for developers, with stack traces, out of the log of a run."""
    warnings.simplefilter("ignore")
    logging.disable()
    threading.excepthook = _report_ignored
    sys.unraisablehook = _report_ignored


def _report_ignored(ignored: "threading.ExceptHookArgs | sys.UnraisableHookArgs") -> None:
    """Report an error of a thread or a destructor.

    Its text and its trace are left out: they may contain secrets.
    """
    sys.stderr.write(f"Warning: an unexpected {ignored.exc_type.__name__} was ignored.\n")


if __name__ == "__main__":
    sys.exit(run())
