"""Whatever a server does to whichever request, once, three times or for ever: the run ends as the interface says."""

import pytest

from tests.reliability.cell import CELLS, Cell, Ran
from tests.reliability.page import NOT_COUNTED, matrix_part

pytestmark = pytest.mark.timeout(600)  # the first test waits for all cells


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_it_ends_as_the_interface_says_and_nothing_else_breaks(matrix: Ran, cell: Cell) -> None:
    outcome = matrix.outcomes[cell]

    assert (outcome.end, outcome.problems) == (cell.expected, ()), f"{cell.rule.why}\n{outcome.log}"


def test_no_cell_says_anything_on_stderr(matrix: Ran) -> None:
    assert matrix.stderr == ""


def test_no_cell_leaves_a_thread_or_a_descriptor_behind(matrix: Ran) -> None:
    assert (matrix.threads_left, matrix.descriptors_left) == ((), 0)


def test_the_page_of_evidence_says_so(matrix: Ran) -> None:
    assert matrix_part(matrix).is_on_the_page(), NOT_COUNTED
