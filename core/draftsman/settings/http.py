"""Outbound HTTP calls."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import Field, field_validator

from draftsman.field_errors import matching
from draftsman.settings.addresses import WebAddress
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import Section, UserPath

HOST = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?\Z")
"""`host`, `host:port`, `[address]:port`."""
MAX_BODY = 25 * 1024 * 1024
"""Maximum size of an artifact, in which a long response is stored."""


class CredentialSettings(Section):
    """A header that `http_request` may send to one origin."""

    origin: WebAddress
    """Scheme, host and port to which the header is limited."""
    header: Annotated[str, matching(r"[A-Za-z0-9-]{1,100}", "allowed: letters, digits and -")] = (
        "Authorization"
    )
    prefix: str = ""
    """Text before the secret, such as `Bearer `."""
    secret: SecretSettings


class HttpSettings(Section):
    """Outbound HTTP calls."""

    allow: tuple[str, ...] = ()
    """Allowed networks, addresses and hosts that are not public, with an optional port."""
    proxy: WebAddress | None = None
    """URL of a proxy for all calls; environment variables are ignored."""
    ca_file: UserPath | None = None
    """File of additional CA certificates."""
    max_body: int = Field(10 * 1024 * 1024, ge=1024, le=MAX_BODY)
    """Maximum size of a decompressed response, in bytes."""
    max_redirects: int = Field(5, ge=0, le=20)
    """Maximum number of redirects of an `http_request`."""
    credentials: dict[str, CredentialSettings] = Field({})

    @field_validator("allow")
    @classmethod
    def _check_allow(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            if not (_is_network(entry) or HOST.match(entry)):
                raise ValueError(
                    f"{entry!r} is not a network, host or host:port, such as"
                    " 10.0.0.0/8, db.internal, localhost:8080, [::1]:8080"
                )
        return value


def _is_network(entry: str) -> bool:
    try:
        ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
    return True
