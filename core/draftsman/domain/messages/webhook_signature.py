"""Signs a webhook after the Standard Webhooks headers, and checks such a signature. Pure.

webhook-id: msg_…           the same in every repetition: what the receiver removes doubles by
webhook-timestamp: 1715947200
webhook-signature: v1,<base64 of HMAC-SHA256 over "id.timestamp.body"> [v1,… of another secret]
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping, Sequence
from typing import Final

from draftsman.errors import UsageError

ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"
TOLERANCE: Final = 300.0
"""Seconds that a message may be old, or ahead, for its receiver (Standard Webhooks: 5 minutes)."""
_PREFIX: Final = "whsec_"
_SHORTEST: Final = 16
"""Bytes of a secret at least."""


def keys(secret: str) -> tuple[bytes, ...]:
    """Return the keys that a secret's text holds: one, or several while it is being changed.

    Each is the base64 of random bytes, with or without `whsec_` before it. Raises UsageError.
    """
    found = tuple(_key(part) for part in secret.split())
    if not found:
        raise UsageError("the webhook's secret is empty; make one: openssl rand -base64 32")
    return found


def sign(keys: Sequence[bytes], id: str, at: int, body: bytes) -> dict[str, str]:
    """Return the three headers of a message sent at `at`, in seconds since 1970."""
    signatures = " ".join(f"v1,{_signature(key, id, at, body)}" for key in keys)
    return {ID: id, TIMESTAMP: str(at), SIGNATURE: signatures}


def verify(
    keys: Sequence[bytes],
    headers: Mapping[str, str],
    body: bytes,
    now: float,
    tolerance: float = TOLERANCE,
) -> bool:
    """Whether a message was signed with one of the keys, and lately; names in lower case."""
    id, at = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    if not (id and at.isascii() and at.isdigit()) or abs(now - int(at)) > tolerance:
        return False
    given = [part[3:] for part in headers.get(SIGNATURE, "").split() if part.startswith("v1,")]
    wanted = [_signature(key, id, int(at), body) for key in keys]
    return any(
        hmac.compare_digest(one.encode(), other.encode()) for one in given for other in wanted
    )


def _key(text: str) -> bytes:
    try:
        key = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if len(key) < _SHORTEST:
        raise UsageError(
            f"the webhook's secret is no base64 of at least {_SHORTEST} bytes;"
            " make one: openssl rand -base64 32"
        )
    return key


def _signature(key: bytes, id: str, at: int, body: bytes) -> str:
    signed = b".".join((id.encode(), str(at).encode(), body))
    return base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
