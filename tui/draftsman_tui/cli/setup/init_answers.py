"""The answers of `draftsman init`, and the configuration that they make."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from draftsman.channels import registry
from draftsman.channels.plugin import ChannelPlugin, ChannelQuestions

HEAD: Final = """\
# The configuration of draftsman, written by `draftsman init`. Change or remove what you like:
# `draftsman config` prints all keys with the values in force, and `draftsman doctor` checks them.
"""
ROLES: Final = ("invoker", "responder", "approver", "operator")


@dataclass(frozen=True, slots=True)
class NewPerson:
    """A person, with their accounts by key: `login`, or the name of a channel."""

    name: str
    accounts: Mapping[str, str]
    roles: tuple[str, ...]


@dataclass(slots=True)
class Answers:
    """What a configuration is made of; the defaults are those of draftsman."""

    database_url: str | None = None
    """None: the embedded server."""
    agents: tuple[str, ...] = ()
    default_agent: str | None = None
    channels: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    """The sources of the secrets of each channel, such as `{"env": "SLACK_BOT_TOKEN"}`."""
    people: list[NewPerson] = field(default_factory=list)


def asked_channels() -> dict[str, tuple[ChannelPlugin, ChannelQuestions]]:
    """Return the channels that have questions, and these, by name."""
    return {
        item.name: (item, item.questions)
        for item in registry.channels()
        if item.questions is not None
    }


def has_password(url: str) -> bool:
    """Return whether a database URL has a password, which no file gets."""
    return bool(urlsplit(url).password) or "password=" in url


def as_file(answers: Answers) -> str:
    """Return the configuration as TOML with comments."""
    return HEAD + "".join(f"{line}\n" for line in _lines(answers))


def _lines(answers: Answers) -> Iterator[str]:
    yield ""
    match answers.database_url:
        case None:
            yield "# PostgreSQL. Unset: an embedded server is started, for this user only."
            yield '#database_url = "postgresql://draftsman@db.example.org/draftsman"'
        case url if has_password(url):
            yield "# PostgreSQL: the URL has a password, and is in DRAFTSMAN_DATABASE_URL."
        case url:
            yield "# PostgreSQL."
            yield _pair("database_url", url)
    if answers.default_agent is not None:
        yield "# The agent of requests that name none."
        yield _pair("default_agent", answers.default_agent)
    for name in answers.agents:
        yield from ("", "# A coding agent; an empty table is enough for one that draftsman knows.")
        yield f"[agents.{name}]"
    known = asked_channels()
    for name, secrets in answers.channels.items():
        channel, questions = known[name]
        yield from ("", f"# {questions.comment}", f"[{channel.table}]")
        yield from (_pair(key, source) for key, source in secrets.items())
    for person in answers.people:
        yield from ("", "# A person, their accounts, and what they may do.")
        yield f"[people.{_key(person.name)}]"
        yield from (_pair(*account) for account in person.accounts.items())
        yield _pair("roles", list(person.roles))


def _pair(key: str, value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(_pair(*item) for item in value.items())
        return f"{key} = {{ {inner} }}"
    # JSON strings and arrays are valid TOML, except for DEL.
    return f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
