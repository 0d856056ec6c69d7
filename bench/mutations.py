"""Measures what the tests notice: changes the package at random, one place at a time, and runs the tests that reach the place.

    python -m pytest --cov --cov-context=test --cov-report= --durations=0 -vv tests/unit tests/scenarios > durations.txt
    python bench/mutations.py draw --coverage .coverage --seed 48 > changes.json
    python bench/mutations.py run changes.json --coverage .coverage --durations durations.txt > noticed.json
    python bench/mutations.py compare noticed.json noticed-later.json

`draw` takes as many changes of each kind, on lines that tests have executed. `run` adds to each the first test that failed, or
`null`. It works in a copy of the folder, with the fastest tests first. A change whose tests take longer than the limit counts as
unnoticed. `compare` prints a table of two runs.
"""

import argparse
import ast
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coverage import CoverageData

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/docs_platform_action"
LIMIT_SECONDS = 90.0
SELECTED = "MUTATION_TESTS"
"""The variable with the file that lists the tests to run."""

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "is": "is not", "is not": "is"} | {
    "in": "not in",
    "not in": "in",
}

Change = dict[str, Any]
"""A change of a file: its kind, its place, the old and the new text, and the line before the change."""


class Source:
    """A file of the package, and its possible changes."""

    def __init__(self, file: Path) -> None:
        self._name = str(file.relative_to(ROOT))
        self._text = file.read_text(encoding="utf-8")
        self._lines = self._text.splitlines(keepends=True)
        self._starts = [0, *itertools.accumulate(map(len, self._lines))]

    def changes(self) -> Iterator[Change]:
        """Yield each change."""
        tree = ast.parse(self._text)
        skipped = {id(node) for outer in ast.walk(tree) for part in _fixed_parts(outer) for node in ast.walk(part)}
        for node in ast.walk(tree):
            if id(node) in skipped:
                continue
            yield from self._changes_of(node)
            if isinstance(node, ast.Constant):
                yield from self._changes_of_constant(node)

    def _changes_of(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Compare(left=left, ops=[_], comparators=[right]):
                begin, end = self._place(left)[1], self._place(right)[0]
                if found := re.fullmatch(r"(\)*\s*)(<=|>=|==|!=|<|>|is not|not in|is|in)(\s*\(*)", self._text[begin:end]):
                    yield self._change("comparison", left, f"{found[1]}{COMPARISONS[found[2]]}{found[3]}", begin, end)
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                begin, end = self._place(test)
                if self._text[begin - 1] != "(":
                    yield self._change("condition", test, f"not ({self._text[begin:end]})", begin, end)
            case ast.BoolOp(op=op, values=[first, second]):
                begin, end = self._place(first)[1], self._place(second)[0]
                word, other = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                if self._text[begin:end].strip() == word:
                    yield self._change("condition", first, self._text[begin:end].replace(word, other), begin, end)
            case ast.Expr(value=ast.Call()):
                yield self._change("dropped call", node, "...", *self._place(node))
            case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
                yield self._change("returned value", node, "return None", *self._place(node))

    def _changes_of_constant(self, node: ast.Constant) -> Iterator[Change]:
        value = node.value
        if isinstance(value, bool | int | float):
            yield self._change("constant", node, repr(not value if isinstance(value, bool) else value + 1), *self._place(node))
        elif isinstance(value, str):
            yield self._change("constant", node, '"changed"', *self._place(node))

    def _place(self, node: Any) -> tuple[int, int]:
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, utf8_bytes: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:utf8_bytes].decode())

    def _change(self, kind: str, node: Any, new: str, begin: int, end: int) -> Change:
        line: int = node.lineno
        return {
            "file": self._name,
            "line": line,
            "kind": kind,
            "before": self._lines[line - 1].strip(),
            "old": self._text[begin:end],
            "new": new,
            "offset": begin - self._starts[line - 1],
        }


def _fixed_parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that are not changed: docstrings, annotations, and the parts of formatted strings."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.JoinedStr):
        yield node.value
    if isinstance(node, ast.JoinedStr):
        yield from node.values
    yield from filter(None, (getattr(node, name, None) for name in ("annotation", "returns")))


def tests_of(data: CoverageData | None, file: str, line: int) -> list[str]:
    """Return the tests that executed a line; for a line that only an import executes, those of its file."""
    if data is None:
        return []
    name = next((name for name in data.measured_files() if name.endswith("/" + file)), None)
    if name is None:
        return []
    contexts = data.contexts_by_lineno(name)
    found = {context.partition("|")[0] for context in contexts.get(line, []) if context}
    if not found and line in contexts:
        found = {context.partition("|")[0] for each in contexts.values() for context in each if context}
    return sorted(found)


def fast_first(tests: list[str], durations: dict[str, float]) -> list[str]:
    """Sort tests by the mean duration of their file's tests."""
    by_file: dict[str, list[str]] = {}
    for test in tests:
        by_file.setdefault(test.partition("::")[0], []).append(test)
    files = sorted(by_file.values(), key=lambda found: sum(durations.get(test, 0.0) for test in found) / len(found))
    return [test for found in files for test in found]


def durations_in(text: str) -> dict[str, float]:
    """Return each test's seconds, from what pytest's `--durations=0 -vv` prints."""
    found: dict[str, float] = {}
    for seconds, test in re.findall(r"^([\d.]+)s (?:call|setup|teardown) +(.*)$", text, re.MULTILINE):
        found[test] = found.get(test, 0.0) + float(seconds)
    return found


def draw(arguments: argparse.Namespace) -> None:
    """Print changes: as many of each kind, on executed lines."""
    chance = random.Random(arguments.seed)  # noqa: S311  # not for secrets
    data = read_data(arguments.coverage)
    files = sorted(PACKAGE.rglob("*.py")) if not arguments.files else [Path(file).resolve() for file in arguments.files]
    by_kind: dict[str, list[Change]] = {}
    for file in files:
        for change in Source(file).changes():
            if data is None or tests_of(data, change["file"], change["line"]):
                by_kind.setdefault(change["kind"], []).append(change)
    drawn = [
        change
        for _, changes in sorted(by_kind.items())
        for change in chance.sample(changes, min(len(changes), arguments.count // len(by_kind)))
    ]
    print(json.dumps(drawn, indent=1))  # noqa: T201  # the result


def apply(change: Change, folder: Path) -> tuple[Path, str] | None:
    """Change a file, and return it with its former text; `None` where the package no longer has the line."""
    file = folder / change["file"]
    if not file.exists():
        return None
    source = file.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    same = [number for number, line in enumerate(lines, 1) if line.strip() == change["before"]]
    if not same:
        return None
    line = min(same, key=lambda number: abs(number - change["line"]))
    begin = sum(map(len, lines[: line - 1])) + change["offset"]
    end = begin + len(change["old"])
    if source[begin:end] != change["old"]:
        return None
    file.write_text(source[:begin] + change["new"] + source[end:], encoding="utf-8")
    return file, source


def run(arguments: argparse.Namespace) -> None:
    """Run the tests on each change, and print the changes with the first failure, and a summary on stderr."""
    changes = json.loads(Path(arguments.changes).read_text(encoding="utf-8"))
    data = read_data(arguments.coverage)
    durations = durations_in(Path(arguments.durations).read_text(encoding="utf-8")) if data else {}
    with tempfile.TemporaryDirectory(prefix="mutations-") as temporary:
        copy = Path(temporary) / "main"
        shutil.copytree(
            ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", ".venv*", ".coverage*", "node_modules", "*cache*")
        )
        for name in ("tests/node_modules", ".venv"):
            (copy / name).symlink_to(ROOT / name)
        for number, change in enumerate(changes, 1):
            if change.get("noticed") and arguments.only_unnoticed:
                continue
            undo = apply(change, copy)
            if undo is None:
                change["noticed"] = "gone"
            else:
                tests = arguments.tests or fast_first(tests_of(data, change["file"], change["line"]), durations)
                change["noticed"] = first_failure(copy, tests, arguments.limit)
                undo[0].write_text(undo[1], encoding="utf-8")
            print(number, change["file"], change["line"], change["noticed"], file=sys.stderr, flush=True)  # noqa: T201
    print(json.dumps(changes, indent=1))  # noqa: T201  # the result


def compare(arguments: argparse.Namespace) -> None:
    """Print a table of two runs with the same changes."""
    before, after = (json.loads(Path(file).read_text(encoding="utf-8")) for file in (arguments.before, arguments.after))
    rows = [
        f"| {old['file'].removeprefix('src/docs_platform_action/')} | {old['kind']} | {_code(old['before'])} | "
        f"{_code(old['old'])} → {_code(old['new'])} | {_test(old['noticed'])} | {_test(new['noticed'])} |"
        for old, new in zip(before, after, strict=True)
    ]
    print("| file | kind | line | change | noticed before by | noticed after by |", "| --- " * 6 + "|", *rows, sep="\n")  # noqa: T201  # the result


def _code(text: str) -> str:
    return f"`{' '.join(text.split())}`".replace("|", "\\|")


def _test(name: str | None) -> str:
    return name.partition("::")[0].removeprefix("tests/") if name else "nothing"


def first_failure(copy: Path, tests: list[str], limit_seconds: float) -> str | None:
    """Return the first test that fails, `error` if they cannot run, or `None`."""
    if not tests:
        return None
    listed = copy.parent / "tests.txt"
    listed.write_text("\n".join(tests), encoding="utf-8")
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    options = ["-p", "bench.mutations", "-p", "no:cacheprovider", "--no-header", "--tb=no"]
    try:
        done = subprocess.run(  # noqa: S603  # pytest, with tests of this repository
            [copy / ".venv/bin/python", "-m", "pytest", "-xq", *options, *files],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": f"{copy / 'src'}:{copy}", SELECTED: str(listed)},
            capture_output=True,
            text=True,
            timeout=limit_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", done.stdout, re.MULTILINE)
    return found[1] if found else "error"


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep the selected tests, with the order of the files. Each file's tests stay together, because they may share objects."""
    selected = set(Path(os.environ[SELECTED]).read_text(encoding="utf-8").split("\n"))
    if any("::" in test for test in selected):
        items[:] = [item for item in items if item.nodeid in selected]


def read_data(file: str | None) -> CoverageData | None:
    """Read the coverage with its contexts."""
    if file is None:
        return None
    data = CoverageData(file)
    data.read()
    return data


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("files", nargs="*")
    drawing.add_argument("--seed", type=int, required=True)
    drawing.add_argument("--count", type=int, default=100)
    drawing.add_argument("--coverage")
    drawing.set_defaults(function=draw)
    running = commands.add_parser("run")
    running.add_argument("changes")
    running.add_argument("--tests", nargs="*", help="run these instead of those that reach the line")
    running.add_argument("--coverage")
    running.add_argument("--durations")
    running.add_argument("--limit", type=float, default=LIMIT_SECONDS)
    running.add_argument("--only-unnoticed", action="store_true")
    running.set_defaults(function=run)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before")
    comparing.add_argument("after")
    comparing.set_defaults(function=compare)
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
