"""Versions of job templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from psycopg.types.json import Json

from draftsman.database.database import Connection, rows
from draftsman.database.named_queries import load
from draftsman.schedules.template import Template, TemplateDefinition

MAX_TEMPLATES: Final = 5000
"""Maximum number of templates, or of versions of a template, read."""
_Q = load("templates")


async def newest(conn: Connection, limit: int = MAX_TEMPLATES) -> list[Template]:
    """Return the newest version of each template, by name."""
    return [_template(row) for row in await rows(conn, _Q["newest"], {"limit": limit})]


async def versions(
    conn: Connection, name: str, version: int | None = None, limit: int = 1
) -> list[Template]:
    """Return the versions of a template, newest first, up to `version`."""
    params = {"name": name, "version": version, "limit": limit}
    return [_template(row) for row in await rows(conn, _Q["versions"], params)]


async def add(
    conn: Connection, name: str, version: int, definition: TemplateDefinition | None, actor: str
) -> Template | None:
    """Store a version; None if it exists."""
    data = None if definition is None else Json(definition.as_data())
    params = {"name": name, "version": version, "definition": data, "actor": actor}
    added = await rows(conn, _Q["add"], params)
    return _template(added[0]) if added else None


def _template(row: Sequence[Any]) -> Template:
    name, version, definition, created_by, created_at = row
    # stored by this or a newer version: an unknown field must not hide the other templates
    fields = (
        {key: definition[key] for key in TemplateDefinition.model_fields if key in definition}
        if definition is not None
        else None
    )
    model = None if fields is None else TemplateDefinition(**fields)
    return Template(name, version, model, created_by, created_at)
