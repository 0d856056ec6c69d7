"""GitHub Action for hosted documentation sites.

It exports a site, or waits for a documentation agent's job.
"""

from typing import Final

__version__: Final = "1.0.0"
