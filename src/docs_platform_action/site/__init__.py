"""The content of a site: its pages, its manifest, and what differs from the published one."""
