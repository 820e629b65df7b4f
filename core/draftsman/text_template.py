"""Templates of texts with named fields. Pure.

    {job} is done: {summary}
    {pr_url}

A line whose fields are all empty is omitted; `{{` and `}}` are literal braces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

_PART: Final = re.compile(r"\{\{|\}\}|\{([^{}\n]*)\}|[{}]")


def check(template: str, fields: Sequence[str], *, name: str, default: str) -> str:
    """Validate a template of these fields; raises ValueError.

    `name` is that of the setting or option, and `default` the text without it, for the error.
    """
    for match in _PART.finditer(template):
        if match[0] in ("{{", "}}"):
            continue
        if match[1] is None:
            raise ValueError(f"{name}: single {match[0]}; write {match[0] * 2} for a literal brace")
        if match[1] not in fields:
            raise ValueError(
                f"{name}: unknown field {{{match[1][:40]}}}; fields: {', '.join(fields)}"
            )
    if not template.strip():
        raise ValueError(f"{name}: the template is empty; remove it to use {default}")
    return template


def fill(template: str, fields: Mapping[str, str]) -> str:
    """Replace the fields of a validated template; values are inserted literally."""
    lines = (_line(line, fields) for line in template.splitlines())
    return "\n".join(line for line in lines if line is not None).strip("\n")


def _line(line: str, fields: Mapping[str, str]) -> str | None:
    names = [match[1] for match in _PART.finditer(line) if match[1] is not None]
    if names and not any(fields.get(name) for name in names):
        return None
    return _PART.sub(lambda match: _part(match, fields), line)


def _part(match: re.Match[str], fields: Mapping[str, str]) -> str:
    return match[0][0] if match[1] is None else fields.get(match[1], "")
