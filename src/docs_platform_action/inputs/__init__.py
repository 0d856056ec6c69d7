"""Inputs: read and checked, as frozen settings."""
