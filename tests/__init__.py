"""The tests, as a regular package: a dependency installs another `tests`, which would hide a namespace package."""
