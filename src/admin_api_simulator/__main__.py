"""`python -m admin_api_simulator`."""

import sys

from admin_api_simulator.cli import main

if __name__ == "__main__":
    sys.exit(main())
