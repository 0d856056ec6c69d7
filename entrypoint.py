"""What the container runs; everything else is in the package."""

import gc
import sys

from docs_platform_action.signals import SignalHandler


def run() -> int:
    """Listen for signals first: the imports that follow take a moment, and a cancel may come in it."""
    signal_handler = SignalHandler()
    gc.disable()  # nothing of what is imported is garbage, and to look for it takes some percent of the time
    from docs_platform_action.main import main

    gc.freeze()  # nor will it ever be
    gc.enable()
    return main(signal_handler)


if __name__ == "__main__":
    sys.exit(run())
