"""Delivery of a finished bundle: downloaded, unpacked, written as Helm values."""
