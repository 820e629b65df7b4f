"""The catalog of attacks: what each one tries, and how it ends with and without the box.

A test that performs an attack registers it:

    @attack(
        "An agent reads its worker's environment from /proc",
        surface="process",
        with_box="the process is not visible",
        without_box="permission denied: the worker is not dumpable",
    )
    async def test_worker_environment_is_private(...): ...

`docs/attacks.md` is generated from the catalog: `python -m tests.docs.attacks`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

Surface = Literal[
    "protocol", "process", "tree", "quota", "network", "input", "approval", "database"
]
Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack, its outcome in each mode of the sandbox, and the test that performs it."""

    title: str
    surface: Surface
    with_box: str
    without_box: str
    test: str


CATALOG: Final[list[Attack]] = []


def attack(
    title: str, *, surface: Surface, with_box: str, without_box: str | None = None
) -> Callable[[Test], Test]:
    """Register the decorated test; without `without_box` the outcome does not depend on the box."""

    def register(test: Test) -> Test:
        path = f"{test.__module__.replace('.', '/')}.py::{test.__qualname__}"
        CATALOG.append(Attack(title, surface, with_box, without_box or with_box, path))
        return test

    return register
