"""The admin key that every test uses, so that one fixture can look for it in everything that the tests bring about."""

from typing import Final

ADMIN_KEY: Final = "adm_k3y-9f27c1d4e8b05a63"
