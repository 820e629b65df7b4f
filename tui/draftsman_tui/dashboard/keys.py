"""Keys of one's own: `[dashboard.keys]`, checked before anything is shown."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final

from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from draftsman.errors import ConfigError

MODIFIERS: Final = frozenset({"ctrl", "shift", "alt"})
KEPT: Final = frozenset({"ctrl+c", "tab", "shift+tab"})
"""Keys that a terminal or a dialog needs."""
_WRITTEN: Final = {"ctrl+space": "ctrl+@", "esc": "escape", "return": "enter"}


def checked(keys: Mapping[str, str], defaults: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the keymap for Textual; raises ConfigError in one line.

    `defaults` are the keys of every command as it comes. Refused are commands that there are not,
    keys that no terminal sends, and a key that two commands would have.
    """
    found: dict[str, str] = {}
    for name, text in keys.items():
        if name not in defaults:
            raise _wrong(name, f"there is no such command; choose: {', '.join(defaults)}")
        found[name] = ",".join(_key(name, one) for one in _parts(text))
    owners: dict[str, str] = {}
    for name in found:
        for key in found[name].split(","):
            if (other := owners.setdefault(key, name)) != name:
                raise _wrong(name, f"{shown(key)!r} is the key of {other} as well; give another")
    for name, default in defaults.items():
        for key in () if name in found else default:
            if key in owners:
                raise _wrong(
                    owners[key], f"{shown(key)!r} is the key of {name}; give {name} another as well"
                )
    return found


def shown(key: str) -> str:
    """Return a key as people write it: `/`, not `slash`."""
    return _SHOWN.get(key, key)


def _parts(text: str) -> list[str]:
    """Part several keys; a comma alone is the key."""
    return [text] if text == "," else [one.strip() for one in text.split(",")]


def _key(name: str, text: str) -> str:
    """Return Textual's name of a key."""
    if text in _WRITTEN:
        return _WRITTEN[text]
    before, plus, base = text.rpartition("+") if len(text) > 1 else ("", "", text)
    given = before.split("+") if plus else []
    if len(base) == 1 and base.isprintable() and not base.isspace():
        base = base if base.isalnum() else _named(base)
    known = len(base) == 1 or base in _NAMED
    if not known or not set(given) <= MODIFIERS or ("shift" in given and len(base) == 1):
        raise _wrong(name, f"there is no key {text!r}; give one like x, X, ?, f5, space, ctrl+x")
    key = "+".join([*given, base])
    if key in KEPT:
        raise _wrong(name, f"{text!r} is needed elsewhere; give another key")
    return key


def _named(character: str) -> str:
    name = unicodedata.name(character, character).lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


_SHOWN: Final = {"ctrl+@": "ctrl+space", "escape": "esc"} | {
    _named(one): one for one in string.punctuation
}
_NAMED: Final = frozenset(key.value for key in Keys if key.value.isalnum()) | _SHOWN.keys()


def _wrong(name: str, why: str) -> ConfigError:
    return ConfigError(f"[dashboard.keys] {name}: {why}")
