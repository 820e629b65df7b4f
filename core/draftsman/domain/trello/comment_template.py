"""Templates of comments: named fields, and nothing that could reach further. Pure.

    {job} is done: {summary}
    {pr_url}

A line whose fields are all empty is left out; `{{` and `}}` are braces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

FIELDS: Final = (
    *("job", "title", "status", "ending", "summary", "pr_url", "result"),
    *("repo", "agent", "invoker", "error"),
)
"""What can be named."""
_PART: Final = re.compile(r"\{\{|\}\}|\{([^{}\n]*)\}|[{}]")


def check(template: str, *, name: str = "comment_template") -> str:
    """Return the template; raises ValueError that says what is wrong, and what is allowed.

    `name` is what its error calls it: the field, or the option that it was given with.
    """
    for match in _PART.finditer(template):
        if match[0] in ("{{", "}}"):
            continue
        if match[1] is None:
            raise ValueError(f"{name}: a lone {match[0]}; write it twice for itself")
        if match[1] not in FIELDS:
            raise ValueError(
                f"{name}: {{{match[1][:40]}}} is no field; fields: {', '.join(FIELDS)}"
            )
    if not template.strip():
        raise ValueError(f"{name}: it is empty; leave it out for the usual comment")
    return template


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template that was checked with its fields replaced, each once and as it is."""
    lines = (_line(line, values) for line in template.splitlines())
    return "\n".join(line for line in lines if line is not None).strip("\n")


def _line(line: str, values: Mapping[str, str]) -> str | None:
    named = [match[1] for match in _PART.finditer(line) if match[1] is not None]
    if named and not any(values.get(name) for name in named):
        return None
    return _PART.sub(lambda match: _part(match, values), line)


def _part(match: re.Match[str], values: Mapping[str, str]) -> str:
    return match[0][0] if match[1] is None else values.get(match[1], "")
