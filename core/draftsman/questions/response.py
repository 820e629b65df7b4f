"""Responses of people to questions, validated before they are recorded."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from draftsman import field_errors
from draftsman.errors import FieldError
from draftsman.questions.question import Decision
from draftsman.questions.review_comment import MAX_COMMENTS, ReviewComment, request_text
from draftsman.text import clean_fields

MAX_REASON: Final = 3000
"""Maximum characters of the reason of an approval or a denial."""
MAX_TEXT: Final = 10_000
"""Maximum characters of a request for changes, which its agent gets as a message."""


class Response(BaseModel):
    """A person's response: a choice or free text, or a decision; exactly one of them."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    source_event_id: str = Field(min_length=1, max_length=300)
    """The channel's id of the click, message or call, for deduplication."""
    text: str | None = Field(None, max_length=20_000)
    choice: int | None = Field(None, ge=1)
    """The number of a choice, of a control that names no value."""
    decision: Decision | None = None
    reason: str | None = Field(None, max_length=MAX_TEXT)
    """Why; of a request for changes, what to change."""
    comments: tuple[ReviewComment, ...] = Field((), max_length=MAX_COMMENTS)
    """Those of a request for changes, whose files and lines the changes of the question have."""
    token: str | None = Field(None, max_length=200)
    """A single-use approval token, which identifies its approver."""

    @model_validator(mode="before")
    @classmethod
    def _cleaned(cls, data: Any) -> Any:
        return clean_fields(data)

    @model_validator(mode="after")
    def _check_decision(self) -> Response:
        if self.decision is not Decision.REQUEST_CHANGES:
            if self.comments:
                raise ValueError("only a request for changes has comments on files")
            if len(self.reason or "") > MAX_REASON:
                raise ValueError(f"the reason has more than {MAX_REASON:,} characters; shorten it")
            return self
        size = len(request_text(self.reason or "", self.comments))
        if not size:
            raise ValueError("a request for changes needs a text or a comment: what to change")
        if size > MAX_TEXT:
            raise ValueError(
                f"a request for changes has at most {MAX_TEXT:,} characters, with its comments;"
                f" this has {size:,}: shorten it"
            )
        return self


def build_response(key: str, question: str = "", **fields: Any) -> Response:
    """Return a response with its idempotency key; raises FieldError for an invalid field.

    `question` is the name that the error begins with.
    """
    try:
        return Response(source_event_id=key, **fields)
    except ValidationError as error:
        name, problem = field_errors.first_error(error)
        prefix = f"{question}: " if question else ""
        message = f"{prefix}{f'the {name} ' if name else ''}{problem}"
        raise FieldError(message, field=name, problem=problem) from None
