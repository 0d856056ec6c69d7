"""What a job pays before the container starts, if its image is pulled and if it is built: `python bench/job_start.py`.

The action's image and one like that of a well-known action are built on the base that the Dockerfile names, but without byte
code, like the public Python image, and pushed to a registry on this machine. In each round, both are pulled by digest, and built
by the classic builder and by BuildKit, with the command lines of GitHub's runner: once with the base image present, and once with
no image. The benchmark starts its own engine, which is empty at the start of each turn. The registry's log is checked: each turn
must fetch exactly the layers that it needs.

Exits with 3 if a pull is larger than `MAX_BYTES` beyond the base, or slower than `MAX_RATIO` of a build.
"""

import argparse
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests have the helpers for images and registries

from bench.needs import need_engine, need_programs, need_root
from bench.own_engine import PROGRAMS, Engine, own_engine

from tests.container.stripped_base import base_of, stripped
from tests.engine import ROOT, build_image, copy_action, docker, remove_image, temporary_tag
from tests.registry import manifest, registry

MAX_BYTES: Final = 3_000_000
MAX_RATIO: Final = 0.1
MISSED: Final = 3
"""The exit code for a missed goal; 1 is an error of the benchmark (`page.py`)."""
ROUNDS: Final = 3
MB: Final = 1_000_000
MIB: Final = 1 << 20
PUBLIC_BASE_BYTES: Final = 42_961_458
"""The compressed layers of python:3.13-slim-trixie for amd64 in August 2026 (docker-library/repo-info, repos/python/remote)."""
MIB_PER_SECOND: Final = 50
"""A network's rate, as in `bundle.py`."""
LOG_SECONDS: Final = 0.5
"""The registry logs a request after the client has the response."""

OURS: Final = "this action"
COMPARED: Final = "gh-action-pypi-publish"
REQUIREMENTS: Final = Path(__file__).with_name("compared_image.txt")
RECIPE: Final = """\
FROM {base}
COPY requirements.txt /
RUN python -m pip install --no-cache-dir --no-deps --ignore-installed --only-binary :all: --requirement /requirements.txt
"""
TINY: Final = "FROM {base}\nCOPY requirements* /requirements/\n"
"""Builds in a second from the folder of either image."""
PULL: Final = "pull"
CLASSIC: Final = "classic builder"
BUILDKIT: Final = "BuildKit"
WAYS: Final = (PULL, CLASSIC, BUILDKIT)
STATES: Final = {True: "base present", False: "nothing present"}

TITLE: Final = "## Pulling the image instead of building it"
TEXT: Final = """
What a job pays before the container starts. A release names the published image by its digest, and the runner pulls it. With
`image: Dockerfile`, the runner builds it. Both were done {rounds} times, in turns, with the command lines of GitHub's runner. The
engine was emptied before each turn. *Base present* is a runner that has used the same base image before. *Nothing present* is a
GitHub-hosted runner, which has no images (actions/runner-images#12625, #13472). *{compared}* has the {packages} packages
of pypa/gh-action-pypi-publish on the same base, but not its upgrade of pip and its scripts.

Goals: at most {most:.0f} MB beyond the base; with the base present, a pull takes at most {ratio:.0%} of the time of either build.
"""
BYTES: Final = """
Sizes are those of the compressed layers in the manifest of each pushed image. A build also fetches the base, and its packages
from the package index. The base image has {base:.1f} MB here, so with nothing present each way takes longer than with the public
base image, which has {public:.1f} MB (docker-library/repo-info, August 2026).
"""
SECONDS: Final = """
Medians, with minimum and maximum in parentheses. Ratios compare turns of the same round. The registry is on the same machine, so
the network takes no time in a pull. With the base present, a network of {rate} MiB/s would add {added:.2f} s for this action. A
build downloads its packages over the network of this machine.
"""
COMPARISON: Final = """
Beyond the base, the pull of this action has {size:.2f} of the bytes of {compared}. The same ratio of the seconds:
"""


@dataclass(frozen=True, kw_only=True)
class Image:
    """A published image, and the folder from which it is built."""

    name: str
    context: Path
    reference: str
    base: Mapping[str, int]
    beyond: Mapping[str, int]
    """The compressed sizes of the layers by digest: those of the base image, and those that the base does not have."""


Turn = tuple[str, bool, str]
"""The name of an image, whether its base is present, and the way to get the image."""


def main() -> int:
    """Measure all turns, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="turns of each kind")
    parser.add_argument(
        "--tiny-images", action="store_true", help="use a base of one file and images of a few, to try this program"
    )
    options = parser.parse_args()
    need_root()
    need_programs("docker-registry", "skopeo", *PROGRAMS)
    need_engine()
    with tempfile.TemporaryDirectory(prefix="job-") as name:
        folder = Path(name)
        for part in ("registry", "engine", "base"):
            (folder / part).mkdir()
        with (
            registry(folder / "registry") as host,
            pushed_base(host, folder / "base", tiny=options.tiny_images) as base,
            own_engine(folder / "engine") as own,
        ):
            images = [publish(own, host, base, context) for context in contexts(folder, base, tiny=options.tiny_images)]
            seconds = measure(own, images, base, folder / "registry" / "registry.log", options.rounds)
    return report({image.name: image for image in images}, seconds)


@contextmanager
def pushed_base(host: str, folder: Path, *, tiny: bool = False) -> Iterator[str]:
    """Push the base without byte code, or one of a single file, to the registry, and return its name there."""
    name = f"{host}/base:1"
    with tiny_base(folder) if tiny else stripped(base_of((ROOT / "Dockerfile").read_text()), folder) as base:
        docker("tag", base, name)
        try:
            docker("push", name, timeout_seconds=600)
        finally:
            remove_image(name)
    yield name


def contexts(folder: Path, base: str, *, tiny: bool = False) -> list[Path]:
    """Write the folders that the images are built from, each with the image's name. Tiny images only copy a few files."""
    action = copy_action(folder / OURS)
    dockerfile = (action / "Dockerfile").read_text()
    (action / "Dockerfile").write_text(dockerfile.replace(f"FROM {base_of(dockerfile)}", f"FROM {base}"))
    (compared := folder / COMPARED).mkdir()
    shutil.copy(REQUIREMENTS, compared / "requirements.txt")
    (compared / "Dockerfile").write_text(RECIPE.format(base=base))
    if tiny:
        for context in (action, compared):
            (context / "Dockerfile").write_text(TINY.format(base=base))
    return [action, compared]


@contextmanager
def tiny_base(folder: Path) -> Iterator[str]:
    """Build an image of a single file, and return its tag."""
    tag = temporary_tag()
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /base/\n")
    build_image(tag, folder)
    try:
        yield tag
    finally:
        remove_image(tag)


def publish(engine: Engine, host: str, base: str, context: Path) -> Image:
    """Build an image with BuildKit, as a release does, and push it."""
    tag = f"{host}/{context.name.replace(' ', '-')}:1"
    engine.docker(*build_command(tag, context), buildkit=True)
    engine.docker("push", tag)
    digest, pushed = manifest(tag)
    below, beyond = split_layers(pushed, manifest(base)[1])
    reference = f"{tag.rpartition(':')[0]}@{digest}"
    return Image(name=context.name, context=context, reference=reference, base=below, beyond=beyond)


def build_command(tag: str, context: Path) -> list[str]:
    """Return the runner's command for a build (actions/runner, `DockerCommandManager`), with the host's network."""
    return ["build", "--network=host", "--tag", tag, "--file", str(context / "Dockerfile"), str(context)]


def split_layers(image: Mapping[str, Any], base: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the sizes by digest of the layers of an image's manifest: those of its base, and the others."""
    below = {layer["digest"] for layer in base["layers"]}
    sizes = {layer["digest"]: int(layer["size"]) for layer in image["layers"]}
    if not below <= sizes.keys():
        raise SystemExit("the image does not have the layers of the base image")
    return {key: size for key, size in sizes.items() if key in below}, {
        key: size for key, size in sizes.items() if key not in below
    }


def measure(engine: Engine, images: Sequence[Image], base: str, log: Path, rounds: int) -> dict[Turn, list[float]]:
    """Take all turns in each round, in the opposite order in every other one, and return their seconds."""
    seconds: defaultdict[Turn, list[float]] = defaultdict(list)
    turns = list(product(images, STATES, WAYS))
    for number in range(rounds):
        for image, present, way in turns if number % 2 == 0 else reversed(turns):
            engine.clear()
            if present:
                engine.docker("pull", base)
            time.sleep(LOG_SECONDS)
            before = len(log.read_text())
            took = get(engine, image, way)
            seconds[image.name, present, way].append(took)
            time.sleep(LOG_SECONDS)
            check_fetched(image, log.read_text()[before:], present=present, way=way)
            sys.stderr.write(f"{number + 1}: {image.name}, {STATES[present]}, {way}: {took:.1f} s\n")
    return dict(seconds)


def get(engine: Engine, image: Image, way: str) -> float:
    """Pull or build an image, and return the seconds."""
    command = ["pull", image.reference] if way == PULL else build_command("built:1", image.context)
    began = time.monotonic()
    engine.docker(*command, buildkit=way == BUILDKIT)
    return time.monotonic() - began


def check_fetched(image: Image, log: str, *, present: bool, way: str) -> None:
    """Exit if a turn fetched too few or too many layers, because the engine was not empty or had no base image."""
    needed = {*({} if present else image.base), *(image.beyond if way == PULL else {})}
    fetched = fetched_blobs(log) & {*image.base, *image.beyond}
    if fetched != needed:
        raise SystemExit(f"{image.name}, {STATES[present]}, {way}: fetched {sorted(fetched)} instead of {sorted(needed)}")


def fetched_blobs(log: str) -> set[str]:
    """Return the digests of the layers and configurations that the registry's log shows as delivered."""
    return {*re.findall(r'"GET /v2/\S+/blobs/(sha256:[0-9a-f]{64}) HTTP/1\.1" 200', log)}


def report(images: Mapping[str, Image], seconds: Mapping[Turn, Sequence[float]]) -> int:
    """Write the section, and return the exit code."""
    ours = images[OURS]
    size = sum(ours.beyond.values())
    rounds = len(seconds[OURS, True, PULL])
    packages = len(re.findall(r"(?m)^[\w.-]+==", REQUIREMENTS.read_text()))
    out = [TITLE, TEXT.format(rounds=rounds, compared=COMPARED, packages=packages, most=MAX_BYTES / MB, ratio=MAX_RATIO)]
    out += table(
        ("image", "layers beyond the base", "MB beyond the base", "MB with nothing present"), rows_of_bytes(images.values())
    )
    base = sum(ours.base.values())
    out += [BYTES.format(base=base / MB, public=PUBLIC_BASE_BYTES / MB).rstrip()]
    out += [SECONDS.format(rate=MIB_PER_SECOND, added=size / MIB_PER_SECOND / MIB)]
    head = ("runner", "image", "pull", CLASSIC, BUILDKIT, f"pull / {CLASSIC}", f"pull / {BUILDKIT}")
    out += table(head, rows_of_seconds(images, seconds))
    out += [COMPARISON.format(size=size / sum(images[COMPARED].beyond.values()), compared=COMPARED)]
    out += table(("runner", *WAYS), compared_rows(seconds))
    missed = missed_goals(size, {way: seconds[OURS, True, way] for way in WAYS})
    out += ["", f"Goals missed: {', '.join(missed)}." if missed else "Each goal is met."]
    sys.stdout.write("\n".join(out) + "\n")
    return MISSED if missed else 0


def rows_of_bytes(images: Collection[Image]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each image with the bytes that a pull gets."""
    for image in images:
        beyond = sum(image.beyond.values())
        yield image.name, str(len(image.beyond)), f"{beyond / MB:.2f}", f"{(beyond + sum(image.base.values())) / MB:.1f}"


def rows_of_seconds(images: Collection[str], seconds: Mapping[Turn, Sequence[float]]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each image and state of the runner with seconds, and ratios of a pull to each build."""
    for (present, state), name in product(STATES.items(), images):
        taken = {way: seconds[name, present, way] for way in WAYS}
        yield (
            state,
            name,
            *(f"{spread(taken[way], digits=1)} s" for way in WAYS),
            *(spread(ratios(taken[PULL], taken[way])) for way in (CLASSIC, BUILDKIT)),
        )


def compared_rows(seconds: Mapping[Turn, Sequence[float]]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each state of the runner with the ratios of this action to the other one."""
    for present, state in STATES.items():
        yield state, *(spread(ratios(seconds[OURS, present, way], seconds[COMPARED, present, way])) for way in WAYS)


def ratios(ours: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return the ratio of each pair of turns in the same round."""
    return [mine / other for mine, other in zip(ours, others, strict=True)]


def spread(values: Sequence[float], *, digits: int = 2) -> str:
    """Format the median with the minimum and the maximum."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def missed_goals(size: int, seconds: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the goals that this action misses, with the base present."""
    missed = [f"{size / MB:.2f} MB beyond the base"] if size > MAX_BYTES else []
    for way in (CLASSIC, BUILDKIT):
        ratio = statistics.median(ratios(seconds[PULL], seconds[way]))
        missed += [f"{ratio:.0%} of the time of a build ({way})"] if ratio > MAX_RATIO else []
    return missed


def table(head: Sequence[str], rows: Iterator[tuple[str, ...]] | Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


if __name__ == "__main__":
    sys.exit(main())
