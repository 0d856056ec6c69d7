"""The tests, as a package of their own: a dependency installs another of this name, which would hide a mere folder."""
