"""The targets of a channel whose secrets this process can read."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

from draftsman.errors import Failure, UsageError

CACHE_SECONDS: Final = 1.0
"""Seconds for which a secret is not read again: the claims of a busy channel follow each other."""
T = TypeVar("T")


class UsableSecrets(Generic[T]):
    """The configured targets with a usable secret, which may appear or go at any time.

    `read` reads the secret of a target, by its table and name; it raises Failure or UsageError.
    """

    def __init__(
        self,
        targets: Mapping[str, T],
        read: Callable[[T, str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._targets = targets
        self._read = read
        self._clock = clock
        self._names: list[str] = []
        self._read_at = -CACHE_SECONDS

    def names(self) -> list[str]:
        """Return the names of the targets."""
        now = self._clock()
        if now - self._read_at >= CACHE_SECONDS:
            self._names = [name for name in sorted(self._targets) if self._problem(name) is None]
            self._read_at = now
        return self._names

    def problems(self) -> list[str]:
        """Return why the others cannot be used."""
        return [text for name in sorted(self._targets) if (text := self._problem(name)) is not None]

    def _problem(self, name: str) -> str | None:
        try:
            self._read(self._targets[name], name)
        except (Failure, UsageError) as error:
            return str(error)
        return None
