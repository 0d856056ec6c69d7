"""The tests, as a regular package.

A dependency installs another `tests`, which would hide a namespace package.
"""
