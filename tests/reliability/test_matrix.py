"""Every fault at every request, once, three times and forever: the run ends as the interface says."""

import pytest

from tests.reliability.cell import CELLS, Cell, MatrixResult
from tests.reliability.page import NOT_COUNTED, matrix_part

pytestmark = pytest.mark.timeout(600)  # the first test waits for all cells


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_each_cell_ends_as_the_interface_says_without_other_errors(matrix: MatrixResult, cell: Cell) -> None:
    outcome = matrix.outcomes[cell]

    assert (outcome.end, outcome.problems) == (cell.expected, ()), f"{cell.rule.why}\n{outcome.log}"


def test_no_cell_writes_to_stderr(matrix: MatrixResult) -> None:
    assert matrix.stderr == ""


def test_no_cell_leaves_a_thread_or_a_descriptor_behind(matrix: MatrixResult) -> None:
    assert (matrix.threads_left, matrix.descriptors_left) == ((), 0)


def test_the_page_has_these_results(matrix: MatrixResult) -> None:
    assert matrix_part(matrix).is_on_the_page(), NOT_COUNTED
