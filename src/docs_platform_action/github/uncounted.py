"""Why a deployment does not count, and which input would count it."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from ..models import Deployment


@dataclass(frozen=True, kw_only=True)
class Uncounted:
    """A deployment of the wanted commit that does not count.

    Each of `reasons` completes "it is …". Each of `inputs` completes "set …", which would count it.
    `is_of_platform` is true if the creator in the inputs has made it, or has reported its state.
    """

    deployment: Deployment
    is_of_platform: bool
    reasons: Sequence[str]
    inputs: Sequence[str]

    @property
    def fact(self) -> str:
        """What is known of it, in a sentence."""
        return (
            f"GitHub has a deployment of {self.deployment.name}, but it does not count, "
            f"because it is {' and '.join(self.reasons)}."
        )

    @property
    def remedy(self) -> str:
        """How to count it, in a sentence."""
        inputs = " and ".join(self.inputs)
        return f"If it is the deployment of the exported site, set {inputs}."


def why_uncounted(
    deployment: Deployment, creator: str, environment: str | None
) -> Uncounted | None:
    """Return why a deployment does not count, or `None` if it does.

    It counts by its creator and its environment. Without an environment, those that GitHub calls
    transient, such as previews, do not count.
    """
    reasons = []
    inputs = []
    if deployment.creator.lower() != creator.lower():
        difference = _difference(deployment, creator)
        reasons.append(f"by {deployment.creator}, not by {creator}{difference}")
        inputs.append(f"`deployment-creator` to {deployment.creator}")
    if environment is None and deployment.is_transient:
        reasons.append("transient, as GitHub calls it")
        inputs.append(f"`deployment-environment` to {deployment.environment}")
    if environment is not None and deployment.environment != environment:
        differing = differing_character(deployment.environment, environment)
        reasons.append(
            f"in the environment {deployment.environment}, not in {environment}{differing}"
        )
        inputs.append(f"`deployment-environment` to {deployment.environment}")
    if not reasons:
        return None
    accounts = {deployment.creator.lower(), (deployment.reporter or "").lower()}
    return Uncounted(
        deployment=deployment,
        is_of_platform=creator.lower() in accounts,
        reasons=reasons,
        inputs=inputs,
    )


def _difference(deployment: Deployment, creator: str) -> str:
    """Return what the names have in common, after them."""
    reporter = deployment.reporter or ""
    if reporter.lower() == creator.lower():
        return ", which has only reported its state"
    return differing_character(deployment.creator, creator)


def differing_character(name: str, other: str) -> str:
    """Return in which character two names differ if there is only one, after the names.

    Two characters may look alike, such as a dash and a hyphen.
    """
    if len(name) != len(other):
        return ""
    pairs = [pair for pair in zip(name, other, strict=True) if pair[0] != pair[1]]
    if len(pairs) != 1:
        return ""
    ((found, wanted),) = pairs
    return f", which has {_character(wanted)} in place of {_character(found)}"


def _character(character: str) -> str:
    if character.isascii():
        return f"'{character}'"
    return f"U+{ord(character):04X} ({unicodedata.name(character, 'unnamed').lower()})"
