"""Writes docs/evidence/reliability.md: the tests, their results, and the defects that they found."""

import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.faults import FAULTS, Operation, Row
from tests.fuzz import EXAMPLES
from tests.reliability.cell import CELLS, Cell, MatrixResult, Outcome, run_cells
from tests.reliability.expected import OK, TIMES, Rule, rule_for
from tests.reliability.findings import FINDINGS
from tests.reliability.killing import Killed, killed_runs
from tests.reliability.soak import Soak, soaked
from tests.reliability.test_injection import EXAMPLES as TEXTS
from tests.reliability.test_injection import FIELDS

FILE: Final = Path(__file__).parents[2] / "docs" / "evidence" / "reliability.md"

_OPENING: Final = """\
# Reliability

For reviewers: which faults and hostile inputs the action was tested with, how each test ended, and which defects the tests found.

`make reliability` runs everything on this page except the fuzzing and the hostile texts, and writes the page from its counts.
`make test` runs everything, also checks memory, threads and descriptors, and fails if a count differs.
"""

_MATRIX: Final = """\
## The fault matrix

Each operation gets each fault once, three times in a row, and forever. A cell shows the three results, or one if they are the
same: ✓ is success, anything else the `failureReason`; the letter refers to [the reason](#why). "Read export" and "read agent
job" are the second poll of a job. "Download, middle" is the request that resumes a download interrupted halfway.

Each cell also checks the exit code, at most one annotation, a summary and no traceback; `jobId`, `status`, `pageCount` and
`results` as far as they are known; a complete bundle, site and values file or none of them (a rejected archive stays for
inspection), and no other files; no second start request after one that may have been processed; no request to another host;
the admin key, in each promised encoding, and the link's query only where they belong; a bounded number of requests; no
remaining thread or descriptor.

The clock counts pauses without waiting. Timeouts are real: a fifteenth of the action's timeout if the fault makes it wait (for
the bundle, of a minute), else the full timeout. `tests/faults.py` contains the faults, `tests/reliability/expected.py` the
expected results and reasons. To run a single cell:

```console
$ .venv/bin/python -m pytest tests/reliability/test_matrix.py -k "bundle and 502 and once"
```
"""

_HOSTILE_TEXTS: Final = """\
## Hostile texts

Each field that a server fills gets texts made of workflow commands, new and old, of line ends, ANSI codes, Markdown, HTML, and
invisible or direction-changing characters. One text contains all of these, and one is 1 MB long, or as long as its field can
be. The log and the outputs are read by the runner's rules, the summary by GitHub's parser, the values file by two YAML parsers:
they contain no commands, formatting or outputs except the action's own.
"""

_FUZZING: Final = """\
## Fuzzing

Each run of the tests uses the same examples. `make fuzz` uses random ones, `FUZZ_EXAMPLES` for each target, and fewer for slow
targets.
"""

_SOAK: Final = """\
## Long waits in virtual time

The whole action waits in virtual time for jobs of up to six hours, while a fifth of all requests fail and outages occur as well.
The expected result of each run is computed from the platform's responses, without the action's code. The number of requests and
log lines of each run is limited; `make test` also checks that memory, threads and descriptors do not grow with the number of
requests. `make soak` runs longer.
"""

_KILLS: Final = """\
## Killed at any moment

Processes are killed with SIGKILL during an export: before and after each call that renames a result to its final name, at random
calls of the whole run, and from outside at random times. Afterwards `bundle-path`, `site-path` and `values-file` are either
unchanged or complete. Half of the workspaces contain earlier results; in these another run follows, and succeeds.
"""

_FINDINGS: Final = """\
## Findings

The defects of the action that these tests, and attacks on it, found. Each was fixed together with a test that failed before.
"""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The results of one run of all parts."""

    matrix: MatrixResult
    soak: Soak
    killed: tuple[Killed, ...]


def gather() -> Evidence:
    """Run the matrix, the soak and the kills, which takes minutes."""
    return Evidence(matrix=run_cells(CELLS), soak=soaked(), killed=killed_runs())


NOT_COUNTED: Final = f"{FILE.name} differs from the counts: run `make reliability`"


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the page: its row in the overview, and its section."""

    row: tuple[object, ...]
    section: tuple[str, ...]

    def is_on_the_page(self) -> bool:
        """Return whether the page has this row and this section."""
        text = FILE.read_text(encoding="utf-8")
        return f"\n{_line(self.row)}\n" in text and "\n".join(self.section) in text


def page(evidence: Evidence) -> str:
    parts = (
        matrix_part(evidence.matrix),
        hostile_texts_part(),
        fuzzing_part(),
        soak_part(evidence.soak),
        killed_part(evidence.killed),
        findings_part(),
    )
    overview = _table(("what", "count", "wrong"), [part.row for part in parts])
    return "\n".join((_OPENING, *overview, "", *(line for part in parts for line in part.section)))


def matrix_part(ran: MatrixResult) -> Part:
    wrong = sum(not _is_as_expected(cell, outcome) for cell, outcome in ran.outcomes.items())
    what = "cells of the [fault matrix](#the-fault-matrix), each a run of the whole action"
    return Part(row=(what, len(ran.outcomes), wrong), section=(*_matrix(ran.outcomes),))


def hostile_texts_part() -> Part:
    what = f"[hostile texts](#hostile-texts), in {len(FIELDS)} fields"
    return Part(row=(what, TEXTS * len(FIELDS), "none in `make test`"), section=(*_hostile_texts(),))


def fuzzing_part() -> Part:
    what = f"examples of [fuzzing](#fuzzing), for {len(EXAMPLES)} targets"
    return Part(row=(what, sum(EXAMPLES.values()), "none in `make test`"), section=(*_fuzzing(),))


def soak_part(soak: Soak) -> Part:
    what = "[long waits](#long-waits-in-virtual-time) with failing requests"
    return Part(row=(what, soak.runs + soak.runs_of_many, len(soak.wrong)), section=(*_soak(soak),))


def killed_part(killed: Sequence[Killed]) -> Part:
    wrong = [bool(run.wrong) for run in killed if run.was_killed]
    return Part(row=("[processes killed](#killed-at-any-moment)", len(wrong), sum(wrong)), section=(*_kills(killed),))


def findings_part() -> Part:
    return Part(row=("[findings](#findings), all fixed", len(FINDINGS), ""), section=(*_findings(),))


def _matrix(outcomes: Mapping[Cell, Outcome]) -> Iterator[str]:
    letters = _letters()
    yield _MATRIX.rstrip("\n")
    for group, faults in itertools.groupby(FAULTS, key=lambda fault: fault.group):
        rows = [(fault.name, *(_cell(fault, operation, outcomes, letters) for operation in Operation)) for fault in faults]
        yield f"\n### {group}\n"
        yield from _table(("fault", *(operation.value for operation in Operation)), rows)
    yield "\n### Why\n"
    yield from _table(("", "reason"), [(letter, why) for why, letter in letters.items()])
    yield ""


def _letters() -> dict[str, str]:
    reasons = dict.fromkeys(rule_for(fault, operation).why for fault, operation in itertools.product(FAULTS, Operation))
    return dict(
        zip(reasons, (f"{first}{second}".strip() for first in " ab" for second in "abcdefghijklmnopqrstuvwxyz"), strict=False)
    )


def _cell(fault: Row, operation: Operation, outcomes: Mapping[Cell, Outcome], letters: Mapping[str, str]) -> str:
    cells = [Cell(fault=fault, operation=operation, times=times) for times in TIMES]
    ends = [_result(cell, outcomes[cell]) for cell in cells]
    rule: Rule = cells[0].rule
    return f"{ends[0] if len(set(ends)) == 1 else ' '.join(ends)} <sup>{letters[rule.why]}</sup>"


def _result(cell: Cell, outcome: Outcome) -> str:
    end = "✓" if outcome.end == OK else f"`{outcome.end}`"
    return end if _is_as_expected(cell, outcome) else f"**{end}, not {cell.expected}**"


def _is_as_expected(cell: Cell, outcome: Outcome) -> bool:
    return outcome.end == cell.expected and not outcome.problems


def _hostile_texts() -> Iterator[str]:
    yield _HOSTILE_TEXTS
    yield from _table(("field", "texts"), [(name, TEXTS) for name in FIELDS])
    yield ""


def _fuzzing() -> Iterator[str]:
    yield _FUZZING
    yield from _table(("target", "examples"), EXAMPLES.items())
    yield ""


def _soak(soak: Soak) -> Iterator[str]:
    yield _SOAK
    yield from _table(
        ("what", "count"),
        [
            ("runs with one job", soak.runs),
            ("runs with 10 to 30 parallel domains", soak.runs_of_many),
            ("hours of virtual time", soak.hours),
            ("requests", soak.exchanges),
            ("failed requests", soak.faults),
            ("maximum requests of a run with one job", soak.max_requests),
            ("maximum log lines of a run with one job", soak.most_lines),
        ],
    )
    yield ""
    yield from _table(("result of a job", "jobs"), [(end if end == "success" else f"`{end}`", count) for end, count in soak.ends])
    yield ""
    yield from _table(("failure of a request", "times"), soak.faults_by_kind)
    yield ""


def _kills(killed: Sequence[Killed]) -> Iterator[str]:
    yield _KILLS
    rows = [
        ("processes killed", sum(run.was_killed for run in killed)),
        ("incomplete results", sum(bool(run.wrong) for run in killed)),
        ("next runs that failed", sum(run.next_run not in {None, "whole"} for run in killed)),
    ]
    yield from _table(("what", "count"), rows)
    yield ""


def _findings() -> Iterator[str]:
    yield _FINDINGS
    yield from (f"- {found}" for found in FINDINGS)
    yield ""
    yield ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    yield from map(_line, rows)


def _line(row: Sequence[object]) -> str:
    return f"| {' | '.join(f'{item:,}' if isinstance(item, int) else str(item) for item in row)} |"


def _is_all_as_expected(evidence: Evidence) -> bool:
    cells = all(_is_as_expected(cell, outcome) for cell, outcome in evidence.matrix.outcomes.items())
    killed = any(run.wrong or run.next_run not in {None, "whole"} for run in evidence.killed)
    return cells and not evidence.soak.wrong and not killed


def _main() -> int:
    """Write the page, and return 1 if a result is wrong."""
    evidence = gather()
    FILE.write_text(page(evidence), encoding="utf-8")
    return 0 if _is_all_as_expected(evidence) else 1


if __name__ == "__main__":
    sys.exit(_main())
