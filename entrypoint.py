"""What the container runs; everything else is in the package."""

import sys

from docs_platform_action.interruption import Interruptions


def run() -> int:
    """Listen for signals first: the imports that follow take a moment, and a cancel may come in it."""
    interruptions = Interruptions()
    from docs_platform_action.main import main

    return main(interruptions)


if __name__ == "__main__":
    sys.exit(run())
