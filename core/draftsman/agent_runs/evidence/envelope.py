"""DSSE envelopes: a payload and signatures of it, with the type of the payload. Pure.

The format is that of https://github.com/secure-systems-lab/dsse, version 1.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, Final

from draftsman.errors import UsageError

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"


@dataclass(frozen=True, slots=True)
class Envelope:
    """A signed payload: `signatures` are (key id, signature)."""

    payload: bytes
    signatures: tuple[tuple[str, bytes], ...]

    def encode(self) -> bytes:
        """Return the envelope as JSON."""
        signatures = [
            {"keyid": id, "sig": base64.b64encode(signature).decode()}
            for id, signature in self.signatures
        ]
        fields = {
            "payloadType": PAYLOAD_TYPE,
            "payload": base64.b64encode(self.payload).decode(),
            "signatures": signatures,
        }
        return json.dumps(fields, indent=1).encode() + b"\n"


def signed_bytes(payload: bytes) -> bytes:
    """Return the bytes to sign: the payload and its type, each with its length."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def parse_envelope(data: bytes) -> Envelope:
    """Return the envelope of a file; raises UsageError."""
    try:
        fields = json.loads(data)
        kind = fields["payloadType"]
        payload = _decode(fields["payload"])
        signatures = tuple(
            (str(item.get("keyid", "")), _decode(item["sig"])) for item in fields["signatures"]
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError("not a DSSE envelope of evidence") from None
    if kind != PAYLOAD_TYPE:
        raise UsageError(f"an envelope of {str(kind)[:80]!r}, not of {PAYLOAD_TYPE}")
    return Envelope(payload, signatures)


def parse_payload(envelope: Envelope) -> dict[str, Any]:
    """Return the statement of an envelope; raises UsageError."""
    try:
        statement = json.loads(envelope.payload)
    except (ValueError, RecursionError):
        statement = None
    if not isinstance(statement, dict):
        raise UsageError("the payload of the envelope is not a JSON object")
    return statement


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
