"""docs/evidence/reliability.md describes the current tests.

test_matrix.py, test_soak.py and test_killed.py compare the page with their own counts.
"""

import pytest

from tests.reliability.page import NOT_COUNTED, Part, findings_part, fuzzing_part, hostile_texts_part


@pytest.mark.parametrize("part", [hostile_texts_part(), fuzzing_part(), findings_part()], ids=lambda part: part.row[0])
def test_the_page_has_this_part(part: Part) -> None:
    assert part.is_on_the_page(), NOT_COUNTED
