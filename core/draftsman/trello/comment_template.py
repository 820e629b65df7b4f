"""Templates of the comment with a result. Pure."""

from __future__ import annotations

from typing import Final

from draftsman import text_template

FIELDS: Final = (
    *("job", "title", "status", "ending", "summary", "pr_url", "result"),
    *("repo", "agent", "invoker", "error"),
)
"""Fields of a template."""


def check(template: str, *, name: str = "comment_template") -> str:
    """Validate a template; raises ValueError. `name` is that of the field or option."""
    return text_template.check(template, FIELDS, name=name, default="the default comment")
