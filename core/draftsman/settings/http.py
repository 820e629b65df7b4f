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

    origin: WebAddress = Field(examples=["https://issues.example.org"])
    """Scheme, host and port that receive it."""
    header: Annotated[str, matching(r"[A-Za-z0-9-]{1,100}", "allowed: letters, digits and -")] = (
        "Authorization"
    )
    """Name of the header."""
    prefix: str = Field("", examples=["Bearer "])
    """Text before the secret."""
    secret: SecretSettings = Field(examples=[{"file": "/run/secrets/issues"}])
    """The secret."""


class HttpSettings(Section):
    """External calls.

    Private, loopback, link-local and other addresses that are not public are refused, also after
    name resolution and after a redirect.
    """

    allow: tuple[str, ...] = ()
    """Exceptions, for calls and for git: networks, addresses, and hosts with any address,
    optionally with a port. Such as "10.0.0.0/8", "build.internal:8080", "[::1]:80"."""
    proxy: WebAddress | None = Field(None, examples=["http://proxy.internal:3128"])
    """A proxy for every call, which resolves names; http_proxy and similar are ignored. Unset:
    none."""
    ca_file: UserPath | None = Field(None, examples=["/etc/ssl/company.pem"])
    """A PEM file with additional trusted authorities. Unset: none."""
    max_body: int = Field(10 * 1024 * 1024, ge=1024, le=MAX_BODY)
    """Maximum bytes of a response, uncompressed."""
    max_redirects: int = Field(5, ge=0, le=20)
    """Maximum redirects of http_request; another origin gets no credentials."""
    credentials: dict[str, CredentialSettings] = Field({}, examples=[{"issues": {}}])
    """Headers that http_request may send, each to a single origin: payloads are stored and hold no
    secrets."""

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
