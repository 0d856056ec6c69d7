"""The matrix, run once for all its tests, with only the selected cells."""

from collections.abc import Iterator

import pytest

from tests.inside import unmeasured
from tests.reliability.cell import CELLS, Cell, MatrixResult, run_cells


@pytest.fixture(scope="module", autouse=True)
def _unmeasured() -> Iterator[None]:
    """Disable coverage, which slows hundreds of runs by half and would distort the memory measurement."""
    with unmeasured():
        yield


@pytest.fixture(scope="session")
def matrix(request: pytest.FixtureRequest) -> MatrixResult:
    """Run the cells of the selected tests, or all cells for a test of the whole matrix."""
    asking = [item for item in request.session.items if isinstance(item, pytest.Function) and "matrix" in item.fixturenames]
    wanted: list[Cell | None] = [_cell_of(item) for item in asking]
    return run_cells(CELLS if None in wanted else [cell for cell in wanted if cell is not None])


def _cell_of(item: pytest.Function) -> Cell | None:
    callspec = getattr(item, "callspec", None)
    cell = callspec.params.get("cell") if callspec is not None else None
    return cell if isinstance(cell, Cell) else None
