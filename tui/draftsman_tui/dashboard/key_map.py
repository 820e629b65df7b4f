"""Keys of one's own: `[dashboard.keys]`, checked before anything is shown."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from draftsman.errors import ConfigError

MODIFIERS: Final = frozenset({"ctrl", "shift", "alt"})
RESERVED: Final = frozenset({"ctrl+c", "tab", "shift+tab"})
"""Keys that a terminal or a dialog needs."""
_WRITTEN: Final = {"ctrl+space": "ctrl+@", "esc": "escape", "return": "enter"}


@dataclass(frozen=True, slots=True)
class DefaultKeys:
    """The keys of a command as it comes, and the places that have it; None: all."""

    keys: Sequence[str]
    on: frozenset[str] | None = None

    def meets(self, other: DefaultKeys) -> bool:
        """Return whether there is a place that has both."""
        return self.on is None or other.on is None or bool(self.on & other.on)


def validate_keys(keys: Mapping[str, str], own: Mapping[str, DefaultKeys]) -> dict[str, str]:
    """Return the keys by command as Textual names them; raises ConfigError in one line.

    `own` are all commands as they come. Refused are commands that there are not, keys that no
    terminal sends, and a key that two commands of one place would have.
    """
    found: dict[str, str] = {}
    for name, text in keys.items():
        if name not in own:
            raise _wrong(name, f"there is no such command; choose: {', '.join(own)}")
        found[name] = ",".join(_key(name, one) for one in _parts(text))
    for name, text in found.items():
        for other in (one for one in own if one != name and own[name].meets(own[one])):
            theirs = found[other].split(",") if other in found else own[other].keys
            if both := [key for key in text.split(",") if key in theirs]:
                what = "give one of them another" if other in found else f"give {other} another too"
                raise _wrong(name, f"{display_key(both[0])!r} is the key of {other}; {what}")
    return found


def display_key(key: str) -> str:
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
    if key in RESERVED:
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
