"""The entry point that startup.py compares the action with: imports `requests` and sends one request."""

import os

import requests

requests.post(
    f"{os.environ['INPUT_BASE-URL']}/exports",
    json={"domain": os.environ["INPUT_DOMAIN"]},
    headers={"Authorization": f"Bearer {os.environ['INPUT_ADMIN-KEY']}"},
    verify=os.environ.get("TRUSTED", True),
    timeout=60,
)
