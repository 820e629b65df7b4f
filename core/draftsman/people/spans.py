"""Text as spans: plain text, and references to actors that each channel displays. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from draftsman.channels import CHANNEL_NAME, ChannelName


@dataclass(frozen=True, slots=True)
class ActorRef:
    """A reference to a person or account: `anna`, `cli:anna`.

    `display_name` is the name that the account reported, if any.
    """

    name: str
    display_name: str = ""

    @property
    def channel(self) -> ChannelName | None:
        """Channel of an account; None for a person."""
        prefix, separator, _ = self.name.partition(":")
        return prefix if separator and CHANNEL_NAME.fullmatch(prefix) else None

    @property
    def id(self) -> str:
        """Channel's own id of an account; the name of a person."""
        return self.name if self.channel is None else self.name.partition(":")[2]

    def __str__(self) -> str:
        return self.display_name or self.name


Span = str | ActorRef
Spans = tuple[Span, ...]


def spans_text(spans: Iterable[Span]) -> str:
    """Return spans as plain text."""
    return "".join(map(str, spans))


def actor_spans(names: Iterable[str]) -> Spans:
    """Return actors, separated by commas."""
    spans = [span for name in names for span in (", ", ActorRef(str(name)))]
    return tuple(spans[1:])


def encode_spans(spans: Iterable[Span]) -> list[Any]:
    """Return spans as JSON: strings, and objects with `actor` and `display_name`."""
    return [
        span if isinstance(span, str) else {"actor": span.name, "display_name": span.display_name}
        for span in spans
    ]


def decode_spans(value: Any) -> Spans:
    """Return the spans of `encode_spans`; empty for any other value."""
    return tuple(
        ActorRef(str(item["actor"]), str(item.get("display_name", "")))
        if isinstance(item, Mapping) and "actor" in item
        else str(item)
        for item in (value if isinstance(value, list) else [])
    )
