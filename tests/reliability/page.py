"""The page of evidence, docs/evidence/reliability.md: what was tried, how each of it ended, and what it brought to light."""

import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fuzz import EXAMPLES
from tests.reliability.cell import CELLS, Cell, Outcome, Ran, run_cells
from tests.reliability.expected import OK, TIMES, Rule, rule_for
from tests.reliability.faults import FAULTS, Fault
from tests.reliability.findings import FINDINGS
from tests.reliability.killing import Killed, killed_runs
from tests.reliability.soak import Soak, soaked
from tests.reliability.test_injection import EXAMPLES as TEXTS
from tests.reliability.test_injection import FIELDS
from tests.reliability.world import Operation

FILE: Final = Path(__file__).parents[2] / "docs" / "evidence" / "reliability.md"

_OPENING: Final = """\
# What it survives

`make reliability` carries out all that is told here but the fuzzing and the hostile texts, and writes this page from what it
counted. `make test` carries out everything, looks at memory, threads and descriptors too, and fails where it counts anything
else.
"""

_MATRIX: Final = """\
## The fault matrix

Each operation meets each fault once, three times in a row, and for ever. A cell tells these three ends, or one for all three: ✓
is success, anything else the `failureReason`; the letter leads to [the reason](#why). "Read export" and "read agent job" are
hit at the second reading of a job. "Download, middle" is the request that resumes a download which broke off halfway.

Besides its end, each cell has to keep all of this: exit code, one annotation or none, a summary, no stack trace; `jobId`,
`status`, `pageCount` and `results` as far as they were known; the bundle, the site and the values file whole or not there (a
refused archive stays, to be looked at), and nothing else left behind; no start sent again that may have been processed; no
request to a host that nobody named; the admin key, in any encoding, and the link's query nowhere but where they belong; a
bounded number of requests; no thread or descriptor left.

Pauses are skipped on a clock that counts them; time-outs are real: a fifteenth of the action's own where the fault makes it
wait (for the bundle, of a minute), else its own. `tests/reliability/faults.py` says how each fault is played, `expected.py`
beside it what is expected and why. One cell alone:

```console
$ .venv/bin/python -m pytest tests/reliability/test_matrix.py -k "bundle and 502 and once"
```
"""

_HOSTILE_TEXTS: Final = """\
## Hostile texts

Each field that a server fills gets texts put together of workflow commands, new and old, of all that ends a line, of ANSI
codes, Markdown, HTML, and characters that change direction or are not seen; one of them holds every such text, one is 1 MB
long, or as long as its field can be. The log and the outputs are read by the runner's own rules, the summary by GitHub's own
parser, the values file by two of YAML: nothing is a command, a format or an output but what the action itself means.
"""

_FUZZING: Final = """\
## Fuzzing

Each run of the tests tries the same examples. `make fuzz` tries random ones, as many of each target as `FUZZ_EXAMPLES` says;
fewer of those that take long.
"""

_SOAK: Final = """\
## Long waits in virtual time

The whole action waits for jobs of up to six hours, on a clock that it moves itself, while a fifth of all exchanges is spoilt
and outages come on top. What each run has to end with is worked out from what its platform answered, without the action's code.
Each run has bounds on its requests and on the lines of its log; `make test` sees to it that memory, threads and descriptors are
the same after any number. `make soak` goes on for longer.
"""

_KILLS: Final = """\
## Killed at any moment

Processes are killed with SIGKILL while they export: before and after each call that gives a result its name, at drawn calls of
the whole run, and from outside at drawn times. Whatever the moment, `bundle-path`, `site-path` and `values-file` are as they
were before, or whole. Half of the workspaces hold earlier results; in those a further run follows, and succeeds.
"""

_FINDINGS: Final = """\
## Findings

What all this brought to light in the action. Each was mended with a test that failed before.
"""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What one run of all this counted."""

    matrix: Ran
    soak: Soak
    killed: tuple[Killed, ...]


def gather() -> Evidence:
    """Run the matrix, the soak and the kills; takes minutes."""
    return Evidence(matrix=run_cells(CELLS), soak=soaked(), killed=killed_runs())


NOT_COUNTED: Final = f"{FILE.name} is not what was counted: run `make reliability`"


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
    """Write the page."""
    parts = (
        matrix_part(evidence.matrix),
        hostile_texts_part(),
        fuzzing_part(),
        soak_part(evidence.soak),
        killed_part(evidence.killed),
        findings_part(),
    )
    overview = _table(("what", "how many", "of them wrong"), [part.row for part in parts])
    return "\n".join((_OPENING, *overview, "", *(line for part in parts for line in part.section)))


def matrix_part(ran: Ran) -> Part:
    """Write what the fault matrix came to."""
    wrong = sum(not _is_as_expected(cell, outcome) for cell, outcome in ran.outcomes.items())
    what = "cells of the [fault matrix](#the-fault-matrix), each a run of the whole action"
    return Part(row=(what, len(ran.outcomes), wrong), section=(*_matrix(ran.outcomes),))


def hostile_texts_part() -> Part:
    """Write what hostile texts are tried."""
    what = f"[hostile texts](#hostile-texts), in {len(FIELDS)} fields"
    return Part(row=(what, TEXTS * len(FIELDS), "none in `make test`"), section=(*_hostile_texts(),))


def fuzzing_part() -> Part:
    """Write what is fuzzed."""
    what = f"examples of [fuzzing](#fuzzing), for {len(EXAMPLES)} targets"
    return Part(row=(what, sum(EXAMPLES.values()), "none in `make test`"), section=(*_fuzzing(),))


def soak_part(soak: Soak) -> Part:
    """Write what the long waits came to."""
    what = "[long waits](#long-waits-in-virtual-time) among spoilt exchanges"
    return Part(row=(what, soak.runs + soak.runs_of_many, len(soak.wrong)), section=(*_soak(soak),))


def killed_part(killed: Sequence[Killed]) -> Part:
    """Write what the kills came to."""
    wrong = [bool(run.wrong) for run in killed if run.was_killed]
    return Part(row=("[processes killed](#killed-at-any-moment)", len(wrong), sum(wrong)), section=(*_kills(killed),))


def findings_part() -> Part:
    """Write what was found, and where it is held."""
    return Part(row=("[findings](#findings), all mended", len(FINDINGS), ""), section=(*_findings(),))


def _matrix(outcomes: Mapping[Cell, Outcome]) -> Iterator[str]:
    letters = _letters()
    yield _MATRIX.rstrip("\n")
    for group, faults in itertools.groupby(FAULTS, key=lambda fault: fault.group):
        rows = [(fault.name, *(_cell(fault, operation, outcomes, letters) for operation in Operation)) for fault in faults]
        yield f"\n### {group}\n"
        yield from _table(("fault", *(operation.value for operation in Operation)), rows)
    yield "\n### Why\n"
    yield from _table(("", "because"), [(letter, why) for why, letter in letters.items()])
    yield ""


def _letters() -> dict[str, str]:
    reasons = dict.fromkeys(rule_for(fault, operation).why for fault, operation in itertools.product(FAULTS, Operation))
    return dict(
        zip(reasons, (f"{first}{second}".strip() for first in " ab" for second in "abcdefghijklmnopqrstuvwxyz"), strict=False)
    )


def _cell(fault: Fault, operation: Operation, outcomes: Mapping[Cell, Outcome], letters: Mapping[str, str]) -> str:
    cells = [Cell(fault=fault, operation=operation, times=times) for times in TIMES]
    ends = [_shown(cell, outcomes[cell]) for cell in cells]
    rule: Rule = cells[0].rule
    return f"{ends[0] if len(set(ends)) == 1 else ' '.join(ends)} <sup>{letters[rule.why]}</sup>"


def _shown(cell: Cell, outcome: Outcome) -> str:
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
        ("what", "how many"),
        [
            ("runs with one job", soak.runs),
            ("runs with 10 to 30 domains side by side", soak.runs_of_many),
            ("hours waited, of virtual time", soak.hours),
            ("exchanges", soak.exchanges),
            ("of them spoilt", soak.faults),
            ("most requests of a run with one job", soak.max_requests),
            ("most lines of its log", soak.most_lines),
        ],
    )
    yield ""
    yield from _table(("end of a job", "jobs"), [(end if end == "success" else f"`{end}`", count) for end, count in soak.ends])
    yield ""
    yield from _table(("how an exchange was spoilt", "times"), soak.faults_by_kind)
    yield ""


def _kills(killed: Sequence[Killed]) -> Iterator[str]:
    yield _KILLS
    rows = [
        ("processes killed", sum(run.was_killed for run in killed)),
        ("results that were there by half", sum(bool(run.wrong) for run in killed)),
        ("next runs without success", sum(run.next_run not in {None, "whole"} for run in killed)),
    ]
    yield from _table(("what", "how many"), rows)
    yield ""


def _findings() -> Iterator[str]:
    yield _FINDINGS
    yield from _table(("what went wrong", "the test that holds it"), [(found.what, f"`{found.test}`") for found in FINDINGS])
    yield ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    yield from map(_line, rows)


def _line(row: Sequence[object]) -> str:
    return f"| {' | '.join(f'{item:,}' if isinstance(item, int) else str(item) for item in row)} |"


def _is_all_well(evidence: Evidence) -> bool:
    cells = all(_is_as_expected(cell, outcome) for cell, outcome in evidence.matrix.outcomes.items())
    killed = any(run.wrong or run.next_run not in {None, "whole"} for run in evidence.killed)
    return cells and not evidence.soak.wrong and not killed


def _main() -> int:
    """Write the page; tell by the exit code whether everything went as it has to."""
    evidence = gather()
    FILE.write_text(page(evidence), encoding="utf-8")
    return 0 if _is_all_well(evidence) else 1


if __name__ == "__main__":
    sys.exit(_main())
