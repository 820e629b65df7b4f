"""Custom key bindings: validation of `[dashboard.keys]`."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from draftsman.errors import ConfigError
from draftsman.formats.near_names import did_you_mean

MODIFIERS: Final = frozenset({"ctrl", "shift", "alt"})
RESERVED: Final = frozenset({"ctrl+c", "tab", "shift+tab"})
"""Keys that the terminal or dialogs use."""
_SPELLINGS: Final = {"ctrl+space": "ctrl+@", "esc": "escape", "return": "enter"}


@dataclass(frozen=True, slots=True)
class DefaultKeys:
    """Default keys of a command, and the views it applies to; None: all."""

    keys: Sequence[str]
    on: frozenset[str] | None = None

    def overlaps(self, other: DefaultKeys) -> bool:
        """Return whether a view has both commands."""
        return self.on is None or other.on is None or bool(self.on & other.on)


def validate_keys(
    keys: Mapping[str, str], defaults: Mapping[str, DefaultKeys], own: Collection[str] = ()
) -> dict[str, str]:
    """Return keys by command, with Textual's key names; raises ConfigError.

    `defaults` has every command, `own` those of the configuration. Rejects unknown commands and
    keys, and a key that two commands of one view would share.
    """
    try:
        return _validated(keys, defaults)
    except _WrongKey as error:
        section = "commands" if error.name in own else "keys"
        raise ConfigError(f"[dashboard.{section}] {error.name}: {error.why}") from None


class _WrongKey(Exception):
    """A key that a command cannot have."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(why)
        self.name = name
        self.why = why


def _validated(keys: Mapping[str, str], defaults: Mapping[str, DefaultKeys]) -> dict[str, str]:
    mapped: dict[str, str] = {}
    for name, text in keys.items():
        if name not in defaults:
            raise _WrongKey(name, f"unknown command{_suggestion(name, defaults)}")
        mapped[name] = ",".join(_key_name(name, part) for part in _split(text))
    for name, text in mapped.items():
        for other in (
            part for part in defaults if part != name and defaults[name].overlaps(defaults[part])
        ):
            other_keys = mapped[other].split(",") if other in mapped else defaults[other].keys
            if conflicts := [key for key in text.split(",") if key in other_keys]:
                hint = "choose another key for either" if other in mapped else f"remap {other} too"
                raise _WrongKey(
                    name, f"{display_key(conflicts[0])!r} is already bound to {other}; {hint}"
                )
    return mapped


def display_key(key: str) -> str:
    """Return a key as shown to users: `/`, not `slash`."""
    return _DISPLAY.get(key, key)


def _split(text: str) -> list[str]:
    """Split a comma-separated list; a single comma is the key itself."""
    return [text] if text == "," else [part.strip() for part in text.split(",")]


def _key_name(name: str, text: str) -> str:
    """Return Textual's name of a key."""
    if text in _SPELLINGS:
        return _SPELLINGS[text]
    before, plus, base = text.rpartition("+") if len(text) > 1 else ("", "", text)
    modifiers = before.split("+") if plus else []
    if len(base) == 1 and base.isprintable() and not base.isspace():
        base = base if base.isalnum() else _character_name(base)
    is_known = len(base) == 1 or base in _KEY_NAMES
    if not is_known or not set(modifiers) <= MODIFIERS or ("shift" in modifiers and len(base) == 1):
        raise _WrongKey(name, f"unknown key {text!r}; examples: x, X, ?, f5, space, ctrl+x")
    key = "+".join([*modifiers, base])
    if key in RESERVED:
        raise _WrongKey(name, f"{text!r} is reserved; choose another key")
    return key


def _character_name(character: str) -> str:
    name = unicodedata.name(character, character).lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


_DISPLAY: Final = {"ctrl+@": "ctrl+space", "escape": "esc"} | {
    _character_name(character): character for character in string.punctuation
}
_KEY_NAMES: Final = frozenset(key.value for key in Keys if key.value.isalnum()) | _DISPLAY.keys()


def _suggestion(name: str, names: Iterable[str]) -> str:
    return did_you_mean(name, names) or "; help (?) and : list the names"
