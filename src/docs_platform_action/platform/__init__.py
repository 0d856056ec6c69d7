"""The administrative API: its four operations, and what its statuses mean."""
