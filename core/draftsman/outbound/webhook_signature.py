"""Signatures of webhooks, according to Standard Webhooks. Pure.

webhook-id: msg_…           the same in every retry, for deduplication by the receiver
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
"""Maximum difference between the clocks, in seconds (Standard Webhooks: 5 minutes)."""
_PREFIX: Final = "whsec_"
_MIN_BYTES: Final = 16
"""Minimum length of a secret."""


def keys(secret: str) -> tuple[bytes, ...]:
    """Parse the keys of a secret; there are several during a rotation.

    Each is the base64 of random bytes, with or without the prefix `whsec_`. Raises UsageError.
    """
    parsed = tuple(_key(part) for part in secret.split())
    if not parsed:
        raise UsageError("the webhook's secret is empty; create it: openssl rand -base64 32")
    return parsed


def sign(keys: Sequence[bytes], id: str, at: int, body: bytes) -> dict[str, str]:
    """Return the three headers of a message sent at the Unix time `at`."""
    signatures = " ".join(f"v1,{_signature(key, id, at, body)}" for key in keys)
    return {ID: id, TIMESTAMP: str(at), SIGNATURE: signatures}


def verify(
    keys: Sequence[bytes],
    headers: Mapping[str, str],
    body: bytes,
    now: float,
    tolerance: float = TOLERANCE,
) -> bool:
    """Return whether a recent message was signed with one of the keys; `headers` are lower-case."""
    id = headers.get(ID, "")
    at = headers.get(TIMESTAMP, "")
    if not (id and at.isascii() and at.isdigit()) or abs(now - int(at)) > tolerance:
        return False
    actual = [part[3:] for part in headers.get(SIGNATURE, "").split() if part.startswith("v1,")]
    expected = [_signature(key, id, int(at), body) for key in keys]
    return any(
        hmac.compare_digest(signature.encode(), wanted.encode())
        for signature in actual
        for wanted in expected
    )


def _key(text: str) -> bytes:
    try:
        key = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if len(key) < _MIN_BYTES:
        raise UsageError(
            f"the webhook's secret is not the base64 of at least {_MIN_BYTES} bytes;"
            " create it: openssl rand -base64 32"
        )
    return key


def _signature(key: bytes, id: str, at: int, body: bytes) -> str:
    content = b".".join((id.encode(), str(at).encode(), body))
    return base64.b64encode(hmac.digest(key, content, "sha256")).decode()
