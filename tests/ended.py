"""The result of a run of the action. Everything that a run leaves is searched for the key."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admin_api_simulator.runner import ActionRun
from docs_platform_action.redaction import MIN_SECRET_LENGTH
from tests.commands import Command, commands_in, lines_of
from tests.keys import ADMIN_KEY
from tests.leaks import leaked

ENTRYPOINT = Path(__file__).parents[1] / "entrypoint.py"


@dataclass(frozen=True, kw_only=True)
class Ended(ActionRun):
    """The result of a run, as the runner and people see it."""

    key: str = ADMIN_KEY

    @property
    def commands(self) -> list[Command]:
        """The commands that the runner would execute.

        The mask of the key, with which every run begins, is left out.
        """
        found = []
        for command in commands_in(self.stdout, self.stderr):
            masks_key = command.name == "add-mask" and command.value == self.key
            if not masks_key:
                found.append(command)
        return found

    @property
    def errors(self) -> list[str]:
        return [found.value for found in self.commands if found.name == "error"]

    @property
    def error(self) -> str:
        """The message of the single error annotation."""
        (message,) = self.errors
        return message

    @property
    def warnings(self) -> list[str]:
        return [found.value for found in self.commands if found.name == "warning"]

    @property
    def log(self) -> str:
        """The lines that are not commands."""
        lines = [line for line in lines_of(self.stdout) if not commands_in(line)]
        return "".join(line + "\n" for line in lines)

    @property
    def reason(self) -> str | None:
        return self.outputs.get("failureReason")

    @property
    def end(self) -> tuple[int, str | None]:
        """The exit code and the `failureReason`."""
        return self.exit_code, self.reason

    @property
    def results(self) -> list[dict[str, Any]]:
        return list(json.loads(self.outputs["results"]))

    @property
    def result(self) -> dict[str, Any]:
        """The single job in `results`."""
        (row,) = self.results
        return row


def ended_of(run: ActionRun, *, key: str = ADMIN_KEY) -> Ended:
    """Return a run's result.

    Raises AssertionError if the key is anywhere but in the command that masks it.
    """
    if len(key) >= MIN_SECRET_LENGTH:
        for text in (run.stdout, run.stderr, run.summary, *run.outputs.values()):
            without_key(text, key)
        for content in run.left.values():
            without_key(content.decode("latin-1"), key)
    return Ended(**vars(run), key=key)


def without_key(text: str, key: str = ADMIN_KEY) -> str:
    """Return a text that people or later steps would see.

    Raises AssertionError if it has the key in any promised form.
    """
    shown = re.sub("^::add-mask::.*$", "", text, flags=re.MULTILINE)
    assert leaked(key, shown) == [], f"the key is shown in {shown[:2000]!r}"
    return text
