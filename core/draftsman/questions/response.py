"""Responses of people to questions, validated before they are recorded."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from draftsman import field_errors
from draftsman.errors import UsageError
from draftsman.text import clean_fields


class Response(BaseModel):
    """A person's response: a choice or free text, or a decision; exactly one of them."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    source_event_id: str = Field(min_length=1, max_length=300)
    """The channel's id of the click, message or call, for deduplication."""
    text: str | None = Field(None, max_length=20_000)
    decision: bool | None = None
    """True approves, False denies."""
    reason: str | None = Field(None, max_length=3000)
    token: str | None = Field(None, max_length=200)
    """A single-use approval token, which identifies its approver."""

    @model_validator(mode="before")
    @classmethod
    def _cleaned(cls, data: Any) -> Any:
        return clean_fields(data)


def build_response(key: str, question: str = "", **fields: Any) -> Response:
    """Return a response with its idempotency key; raises UsageError for invalid fields.

    `question` is the name that the error begins with.
    """
    try:
        return Response(source_event_id=key, **fields)
    except ValidationError as error:
        name, problem = field_errors.first_error(error)
        prefix = f"{question}: " if question else ""
        raise UsageError(f"{prefix}the {name or 'answer'} {problem}") from None
