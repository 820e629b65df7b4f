"""Webhooks of forges: their proof of origin, and their content. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from draftsman.forges.forge_event import Notification
from draftsman.formats.received_json import read_object
from draftsman.settings.forges import ForgeSettings


class WebhookFormat(Protocol):
    """The webhooks of a kind of forges, as functions of a module. Names of headers are lower case.

    They must not fail for any JSON.
    """

    def project_of(self, payload: Mapping[str, Any], /) -> str:
        """Return the repository of a payload, `acme/pay` in lower case; else empty."""
        ...

    def is_genuine(self, secret: str, headers: Mapping[str, str], body: bytes, /) -> bool:
        """Return whether the forge sent the body, compared in constant time."""
        ...

    def parse(self, headers: Mapping[str, str], payload: Mapping[str, Any], /) -> Notification:
        """Return the content of a payload; perhaps without events."""
        ...


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The webhooks of a forge, with their secrets."""

    format: WebhookFormat
    secret: str | None = field(repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The secrets of single repositories, by path in lower case."""

    @classmethod
    def of(cls, forge: ForgeSettings, secret: str | None, secrets: Mapping[str, str]) -> Self:
        """Return the webhooks of a forge whose kind has them; raises ConfigError."""
        return cls(forge.load_part(forge.plugin.webhooks or ""), secret, secrets)

    def claimed_project(self, body: bytes) -> str:
        """Return the repository that a body names before its origin is proven; else empty."""
        return self.format.project_of(read_object(body) or {})

    def is_genuine(self, project: str, headers: Mapping[str, str], body: bytes) -> bool:
        """Return whether the forge sent the body for this repository; False without a secret."""
        secret = self.secrets.get(project, self.secret or "")
        return bool(secret) and self.format.is_genuine(secret, headers, body)

    def content(self, headers: Mapping[str, str], body: bytes) -> Notification | None:
        """Return the content of a genuine webhook; None if it is not a JSON object."""
        payload = read_object(body)
        return None if payload is None else self.format.parse(headers, payload)
