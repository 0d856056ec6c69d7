"""HTTP: one request made well, and when to send it again."""
