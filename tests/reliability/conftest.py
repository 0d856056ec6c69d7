"""The matrix, run once for all tests that look at it: as many of its cells as are asked for."""

from collections.abc import Iterator

import pytest

from tests.inside import unmeasured
from tests.reliability.cell import CELLS, Cell, Ran, run_cells


@pytest.fixture(scope="module", autouse=True)
def _unmeasured() -> Iterator[None]:
    """Leave lines to the tests that look at one each: measured, whole runs by the hundred take half as long again.

    What measures would hold more memory with each line that runs, too.
    """
    with unmeasured():
        yield


@pytest.fixture(scope="session")
def matrix(request: pytest.FixtureRequest) -> Ran:
    """Run the cells whose tests are about to run, or all for a test that looks at more than one."""
    asking = [item for item in request.session.items if isinstance(item, pytest.Function) and "matrix" in item.fixturenames]
    wanted: list[Cell | None] = [_cell_of(item) for item in asking]
    return run_cells(CELLS if None in wanted else [cell for cell in wanted if cell is not None])


def _cell_of(item: pytest.Function) -> Cell | None:
    callspec = getattr(item, "callspec", None)
    cell = callspec.params.get("cell") if callspec is not None else None
    return cell if isinstance(cell, Cell) else None
