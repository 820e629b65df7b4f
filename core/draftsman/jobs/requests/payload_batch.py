"""Requests of a batch that differ in their payloads alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

from draftsman.errors import UsageError
from draftsman.jobs.job import AGENT_TYPE
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.retries import BUILT_IN
from draftsman.text import REQUEST_LIMIT, canonical, clean

SHARED: Final = frozenset(
    {
        *("type", "payload", "payload_version", "queue", "priority", "title", "tags", "delay"),
        *("concurrency_key", "max_attempts", "max_retries", "on_lost"),
    }
)
"""The fields of requests that may share all of them except the payload."""
_MAX_LENGTH: Final = REQUEST_LIMIT // 8
"""Characters of JSON that are within the limit, however they are encoded and spaced."""


class PayloadBatch(NamedTuple):
    """The payloads of requests that share all other fields, each also as canonical JSON."""

    payloads: Sequence[dict[str, Any]]
    texts: Sequence[str]

    @classmethod
    def of(cls, payloads: Iterable[dict[str, Any]]) -> Self:
        """Clean the payloads; raises UsageError for one that is no JSON, or may be too long."""
        cleaned = [clean(payload) for payload in payloads]
        texts = [canonical(payload) for payload in cleaned]
        if max(map(len, texts), default=0) > _MAX_LENGTH:
            raise UsageError("a payload may be too long to share the other fields")
        return cls(cleaned, texts)

    def digests(self, request: Invocation) -> list[str]:
        """Return the digest of the request with each payload."""
        frame = request.digest_frame
        return [frame.digest(text) for text in self.texts]


def payload_batch(requests: Sequence[Mapping[str, Any]]) -> PayloadBatch | None:
    """Return the payloads of requests with the same other fields, which their type may share.

    None for other requests, and for payloads that are refused: each is to be checked by itself.
    """
    if len(requests) < 2:
        return None
    first = requests[0]
    if not first.keys() <= SHARED or first.get("type", AGENT_TYPE) in BUILT_IN:
        return None
    shared = {**first, "payload": None}
    for fields in requests:
        if type(fields.get("payload")) is not dict or {**fields, "payload": None} != shared:
            return None
    try:
        return PayloadBatch.of(fields["payload"] for fields in requests)
    except UsageError:
        return None
