"""Types of the rules for Block Kit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "text", "string", "url", "choice", "flag", "number", "strings", "one", "many", "block",
    "blocks", "any",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spec:
    """The rule of a property.

    `most` counts characters of a text or string, items of a list; None is no limit. `of` names the
    types of a text, the values of a choice, or the shapes of one or many objects or blocks.
    """

    kind: Kind
    most: int | None = None
    need: bool = False
    least: int = 1
    of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shape:
    """The rule of an object.

    At least one property of `any_of` is required, exactly one of `one_of`. A `typed` object names
    its shape in `type`.
    """

    fields: dict[str, Spec]
    any_of: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    typed: bool = True


def plain(most: int, *, need: bool = False) -> Spec:
    """Return the rule of a plain_text object."""
    return Spec("text", most, need, of=("plain_text",))


def text(most: int, *, need: bool = False) -> Spec:
    """Return the rule of a text, plain or mrkdwn."""
    return Spec("text", most, need, of=("plain_text", "mrkdwn"))


def string(most: int | None = None, *, need: bool = False, least: int = 1) -> Spec:
    """Return the rule of a text without markup."""
    return Spec("string", most, need, least)


def url(most: int = 3000, *, need: bool = False) -> Spec:
    """Return the rule of a URL."""
    return Spec("url", most, need)


def choice(*of: str, need: bool = False) -> Spec:
    """Return the rule of one of these strings."""
    return Spec("choice", need=need, of=of)


def number(most: int | None = None, *, least: int = 0) -> Spec:
    """Return the rule of a number."""
    return Spec("number", most, least=least)


def one_part(*of: str, need: bool = False) -> Spec:
    """Return the rule of an object of one of these shapes."""
    return Spec("one", need=need, of=of)


def part_list(*of: str, most: int | None = None, need: bool = False, least: int = 1) -> Spec:
    """Return the rule of a list of objects of these shapes."""
    return Spec("many", most, need, least, of)


def block(*of: str, need: bool = False) -> Spec:
    """Return the rule of a block within a block."""
    return Spec("block", need=need, of=of)


def block_list(*of: str, most: int | None = None, need: bool = False) -> Spec:
    """Return the rule of a list of blocks within a block."""
    return Spec("blocks", most, need, of=of)


FLAG = Spec("flag")
STRINGS = Spec("strings")
ANY = Spec("any")
