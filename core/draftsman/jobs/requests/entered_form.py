"""What a person or program entered for a job of a template or described type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import Invocation


@dataclass(frozen=True, slots=True)
class EnteredForm:
    """Values of parameters, and what the request has beside them."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """By the name of the parameter."""
    typed: bool = False
    """Whether the values are texts that a person typed."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of the request; they replace those of a template."""
    event: str | None = None
    """ID of the event in a channel, for which there is one job however often it comes."""
    notify: tuple[str, ...] = ()
    """Targets that precede those of the request."""
    chats: bool = True
    """Whether the chats of the targets must be configured here."""

    @property
    def request_fields(self) -> dict[str, Any]:
        """The fields of the request without those of its template or type."""
        of_event = (
            {} if self.event is None else {"key": self.event, "external_event_id": self.event}
        )
        return of_event | dict(self.fields)

    def addressed(self, request: Invocation) -> Invocation:
        """Return the request with the targets of the form before its own."""
        if not self.notify:
            return request
        targets = tuple(dict.fromkeys((*self.notify, *request.notify)))
        return request.model_copy(update={"notify": targets})
