"""The inputs of a run, once they are checked. Settings are read from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..models import Manifest, OutputPath
from . import table
from .sites import Site
from .table import Input, Mode, PathInput
from .values import InputValues

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The inputs without mistakes, and what belongs to them.

    `paths` are those of each site, by input. `published` has the manifest of each published site,
    if they are compared. `certificates` is the text of a PEM file. The addresses of GitHub and
    the repository are the runner's own; outside a workflow they are empty.
    """

    values: InputValues
    sites: Sequence[Site]
    paths: Mapping[str, Sequence[OutputPath]]
    published: Sequence[Manifest] | None
    certificates: str | None
    github_api_url: str
    github_server_url: str
    github_repository: str

    @property
    def mode(self) -> Mode:
        """What the run does."""
        return self.required(table.MODE)

    def required(self, row: Input[T]) -> T:
        """Return the value of an input that the mode requires, or that has a default."""
        return row.parse(self.values.text(row))

    def value(self, row: Input[T]) -> T | None:
        """Return the value of an input, unless it is empty."""
        return self.values.value(row)

    def required_path(self, row: PathInput) -> OutputPath:
        """Return the path in an input that the mode, which has one site, requires."""
        (path,) = self.paths[row.name]
        return path

    def path(self, row: PathInput, number: int) -> OutputPath | None:
        """Return the path of a site, unless its input is empty."""
        if row.name not in self.paths:
            return None
        return self.paths[row.name][number]
