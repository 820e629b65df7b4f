"""The catalog of attacks and their outcomes with and without the sandbox.

A test that performs an attack registers it:

    @attack(
        "An agent reads its worker's environment from /proc",
        surface="process",
        with_sandbox="the process is not visible",
        without_sandbox="permission denied: the worker is not dumpable",
    )
    async def test_worker_environment_is_private(...): ...

`docs/attacks.md` is generated from the catalog: `python -m tests.docs.attacks`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

Surface = Literal[
    "repository", "protocol", "process", "tree", "quota", "network", "input", "approval", "database"
]
Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack, its outcome in each mode of the sandbox, and the test that performs it."""

    title: str
    surface: Surface
    with_sandbox: str
    without_sandbox: str
    test: str
    effect: bool | None = None
    """Whether it has an effect with `mode = "off"`, which a test checks; None: unchecked."""
    attempts: tuple[str, ...] = ()
    """The attempts of `hostile_agent` that it consists of."""

    def works_in(self, mode: str) -> bool | None:
        """Return whether it has an effect in a mode of `OPEN`; None: unchecked."""
        return not OPEN[mode].isdisjoint(self.attempts) if self.attempts else None


CATALOG: Final[list[Attack]] = []
OPEN: Final[dict[str, frozenset[str]]] = {
    "user": frozenset({"unix_socket"}),
    "container": frozenset(),
}
"""The attempts of `hostile_agent` that work in a mode, which a test of `make soak` checks."""


def attack(
    title: str,
    *,
    surface: Surface,
    with_sandbox: str,
    without_sandbox: str | None = None,
    effect: bool | None = None,
    attempts: tuple[str, ...] = (),
) -> Callable[[Test], Test]:
    """Register the decorated test; `without_sandbox` defaults to `with_sandbox`."""

    def register(test: Test) -> Test:
        path = f"{test.__module__.replace('.', '/')}.py::{test.__qualname__}"
        without = without_sandbox or with_sandbox
        item = Attack(title, surface, with_sandbox, without, path, effect, attempts)
        CATALOG.append(item)
        return test

    return register
