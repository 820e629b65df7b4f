"""Sentences for what queries and the functions and triggers of the schema report.

The database names a rule or a kind of notice, and the values of a sentence about it, as
`questions.answer` and `{"job": 13, "question": 1, "voter": "anna"}`. The sentence is in the module
`sentences` of that package, which is imported by its name when it is needed, or in that which the
package of a channel declares.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from draftsman import plugins
from draftsman.channels import registry
from draftsman.errors import ConfigError
from draftsman.text import STORED_SENTENCE

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
_known_fields: Final = dict[type, tuple[str, ...]]()
STORED_KEYS: Final = frozenset({"reason", "error"})
"""Keys of events and resolutions whose text the database may have written."""
SENTENCES: Final = {
    "channel_taken": "the channel {channel} belongs to the package {package}",
    "actor": "{role} cannot act as {actor}",
    "operator": "{role} is not an operator",
}


def of_package(package: str) -> Mapping[str, str]:
    """Return the sentences of a package or channel by name; none for an unknown one."""
    if package.isidentifier():
        with suppress(ModuleNotFoundError):
            return _sentences(import_module(f"draftsman.{package}.sentences"))
    plugin = registry.find(package)
    if plugin is None or plugin.sentences is None:
        return {}
    with suppress(ConfigError):
        entry = plugins.find(plugins.CHANNELS, package)
        return _sentences(plugins.load_part(entry, plugin.sentences))
    return {}


def _sentences(module: Any) -> Mapping[str, str]:
    sentences: Mapping[str, str] = module.SENTENCES
    return sentences


def sentence(name: str, values: Mapping[str, Any]) -> str:
    """Return the sentence of this name, such as `questions.answer`.

    A newer schema may have names or values that are not known here: these are returned instead.
    """
    return _known_sentence(name, values) or f"{name} {json.dumps(values)}"


def with_sentence(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of a notice with its text, if it has only a name and values."""
    name = payload.get("sentence")
    values = payload.get("values")
    if not isinstance(name, str) or not isinstance(values, dict):
        return payload
    return {"text": sentence(name, values), "names_job": True}


def _known_sentence(name: str, values: Mapping[str, Any]) -> str | None:
    package, _, own_name = name.partition(".")
    try:
        return of_package(package)[own_name].format_map(values)
    except KeyError:
        return None


def stored_text(text: str) -> str:
    """Return the text of a column; its sentence, if the database stored a name and values."""
    if not text.startswith('{"values": {'):
        return text
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError):  # the text of a person or a program
        return text
    name = stored.get("sentence")
    values = stored["values"]
    if not isinstance(name, str) or not isinstance(values, dict):
        return text
    return _known_sentence(name, values) or text


def with_sentences(row: T) -> T:
    """Return a row whose fields with the metadata `STORED_SENTENCE` have sentences."""
    stored = {name: getattr(row, name) for name in _stored_fields(type(row))}
    read = {name: _with_sentences(value) for name, value in stored.items()}
    if read == stored:
        return row
    changed: T = replace(cast("Any", row), **read)
    return changed


def _with_sentences(value: Any) -> Any:
    if isinstance(value, str):
        return stored_text(value)
    if isinstance(value, dict):
        return value | {key: _with_sentences(value[key]) for key in STORED_KEYS & value.keys()}
    return value


def _stored_fields(row: type) -> tuple[str, ...]:
    if row not in _known_fields:
        columns = fields(row) if is_dataclass(row) else ()
        stored = (column.name for column in columns if column.metadata == STORED_SENTENCE)
        _known_fields[row] = tuple(stored)
    return _known_fields[row]


def refusal(error: psycopg.Error) -> str | None:
    """Return the sentence for an error of `draftsman.refuse`; None for an error of PostgreSQL."""
    name = error.diag.message_primary or ""
    if error.diag.schema_name != "draftsman" or "." not in name:
        return None
    values = json.loads(error.diag.message_detail or "{}")
    text = sentence(name, values)
    if "operation" in values:
        return f"{values['table']}: {values['operation']} is not allowed; {text}"
    return text
