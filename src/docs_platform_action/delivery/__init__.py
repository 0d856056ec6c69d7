"""What becomes of a finished bundle: fetched, opened, and handed over."""
