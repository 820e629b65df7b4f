"""Signed reply addresses, such as `draftsman+8e-1-6a2f3c10-…@example.org`. Pure.

An address binds a person, a job or question, and an expiry. It is no password: a reply also needs
the word of the receiving server for its sender.
"""

from __future__ import annotations

import base64
import hmac
import re
from typing import Final, NamedTuple

_TAG: Final = re.compile(r"(([0-9a-f]{1,8})-([0-9a-f]{1,3})-([0-9a-f]{1,9}))-([a-z2-7]{20})")
"""The topic in hexadecimal, and 100 bits of its signature, which survive lower case."""


class ReplyTopic(NamedTuple):
    """What a reply is about."""

    job: int
    """The number of the job; 0: the digests of the person."""
    question: int
    """The ordinal of the question; 0: the job."""
    expires: int
    """Seconds since 1970."""


def reply_address(address: str, key: bytes, person: str, topic: ReplyTopic) -> str:
    """Return the address to which a person replies."""
    local, _, domain = address.partition("@")
    fields = "-".join(f"{field:x}" for field in topic)
    return f"{local}+{fields}-{_signature(key, person, fields)}@{domain}"


def topic_of(recipient: str, address: str, key: bytes, person: str) -> ReplyTopic | None:
    """Return the topic that a recipient was signed for, also after its expiry.

    None: it is no reply address, it was altered, or it is that of another person.
    """
    local, _, domain = address.partition("@")
    match = _TAG.fullmatch(recipient.removeprefix(f"{local}+").removesuffix(f"@{domain}"))
    if match is None or not hmac.compare_digest(match[5], _signature(key, person, match[1])):
        return None
    return ReplyTopic(*(int(field, 16) for field in match.group(2, 3, 4)))


def _signature(key: bytes, person: str, fields: str) -> str:
    digest = hmac.digest(key, f"{fields} {person}".encode(), "sha256")
    return base64.b32encode(digest).decode().lower()[:20]
