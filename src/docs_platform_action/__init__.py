"""GitHub Action that exports a hosted documentation site, or waits for a documentation agent's job."""

from typing import Final

__version__: Final = "1.0.0"
