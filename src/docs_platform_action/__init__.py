"""GitHub Action that exports a documentation site, or waits for a documentation agent's job."""

from typing import Final

__version__: Final = "1.0.0"
