"""The targets of a channel whose secrets this process can read."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from draftsman.errors import Failure, UsageError
from draftsman.outbound.secret_values import check_secret
from draftsman.settings.attention import PagerSettings
from draftsman.settings.webhooks import WebhookSettings

CACHE_SECONDS: Final = 1.0
"""Seconds for which a secret is not read again: the claims of a busy channel follow each other."""


class UsableSecrets:
    """The configured targets with a usable secret, which may appear or go at any time."""

    def __init__(
        self,
        targets: Mapping[str, WebhookSettings] | Mapping[str, PagerSettings],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._targets = targets
        self._clock = clock
        self._names: list[str] = []
        self._read_at = -CACHE_SECONDS

    def names(self) -> list[str]:
        """Return the names of the targets."""
        now = self._clock()
        if now - self._read_at >= CACHE_SECONDS:
            self._names = [name for name in sorted(self._targets) if self._is_usable(name)]
            self._read_at = now
        return self._names

    def _is_usable(self, name: str) -> bool:
        try:
            check_secret(self._targets[name], name)
        except (Failure, UsageError):
            return False
        return True
