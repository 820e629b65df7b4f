"""Tables of settings by repository."""

from __future__ import annotations

from typing import Any, Final

from pydantic import AfterValidator


def _lower_keys(value: dict[str, Any]) -> dict[str, Any]:
    """Return the values by name in lower case; forges ignore the case of a repository."""
    lower: dict[str, Any] = {}
    for name, item in value.items():
        if name.lower() in lower:
            raise ValueError(
                f"{name!r} is there twice, in upper and lower case; remove one of them"
            )
        lower[name.lower()] = item
    return lower


ByRepo: Final = AfterValidator(_lower_keys)
