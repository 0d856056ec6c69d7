"""The admin keys of all tests. A fixture searches for them in everything that a test leaves."""

from typing import Final

ADMIN_KEY: Final = "adm_k3y-9f27c1d4e8b05a63"

AWKWARD_KEYS: Final = (
    "adm/k3y+9f27%c1d4e8=b05:a63",
    "adm%2Fk3y%2B9f27",
    "adm\"k3y'9f27\\c1d4",
    "adm\\u0041k3y\\x41\\n9f27\\",
    "<adm>&k3y;&amp;9f27&lt;",
    "|adm`k3y`$9f27$*c1*_d4_~e8~",
    "-[adm](k3y)#9f27;c1,d4",
    "::set-output::k3y-9f27",
    "adm::add-mask::k3y-9f27",
    "adm##[x]k3y-9f27",
    "##[error]adm-k3y-9f27",
    "${{adm.k3y}}!9f27@c1^d4",
    "%%%25%25%%adm",
    "........k3y",
)
"""Keys that need escaping in most formats. Like every valid key they are printable ASCII."""
