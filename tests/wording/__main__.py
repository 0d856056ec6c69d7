"""Write the pages."""

from tests.wording import test_errors, test_runs

for page in (test_errors, test_runs):
    page.FILE.write_text(page.page(), encoding="utf-8")
