"""Types of settings: URLs, and addresses of HTTP servers."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from draftsman.field_errors import matching


def web_address(value: str) -> str:
    """Validate an HTTP URL without user, query and fragment; raises ValueError."""
    try:
        parts = urlsplit(value)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("must be a URL without user, query or fragment: https://host/path")
    return value


WebAddress = Annotated[str, AfterValidator(web_address)]
"""An HTTP URL without user, query and fragment."""


def _check_port(value: str) -> str:
    if not 0 <= int(value.rpartition(":")[2]) <= 65_535:
        raise ValueError("the port must be 0 to 65535")
    return value


Listen = Annotated[
    str,
    matching(
        r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}",
        "must be host:port, such as 127.0.0.1:3000",
    ),
    AfterValidator(_check_port),
]


def address_of(listen: str | None) -> tuple[str, int] | None:
    """Split a validated address into host and port."""
    if listen is None:
        return None
    host, _, port = listen.rpartition(":")
    return host.strip("[]"), int(port)
