"""Validator of the size of JSON in a field of a model."""

from __future__ import annotations

from typing import Any

from pydantic import AfterValidator

from draftsman.errors import UsageError
from draftsman.text import REQUEST_LIMIT, check_size


def document(what: str, limit: int = REQUEST_LIMIT) -> AfterValidator:
    """Return a validator of JSON with at most `limit` bytes."""

    def check(value: Any) -> Any:
        try:
            return check_size(value, limit, what)
        except UsageError as error:
            raise ValueError(str(error)) from None

    return AfterValidator(check)
