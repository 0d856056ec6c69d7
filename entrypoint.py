"""The entry point of the container."""

import gc
import sys

from docs_platform_action.signals import SignalHandler


def run() -> int:
    """Handle signals first: a cancel may come during the imports, which take a moment."""
    signal_handler = SignalHandler()
    gc.disable()  # imports leave no garbage, and searching for it takes a few percent of their time
    from docs_platform_action.main import main

    gc.freeze()  # what is imported never becomes garbage
    gc.enable()
    return main(signal_handler)


if __name__ == "__main__":
    sys.exit(run())
