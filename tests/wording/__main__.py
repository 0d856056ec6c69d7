"""Write the pages."""

from tests.wording.test_pages import PAGES

for file, page in PAGES.items():
    file.write_text(page(), encoding="utf-8")
