"""Write the pages."""

from tests.wording.page import NAMES, path_of, written

for name in NAMES:
    path_of(name).write_text(written(name), encoding="utf-8")
