"""The tables of channels, and the accounts of people there, as part of the settings.

A package that cannot be used harms no other: its table is not validated, and whatever uses the
channel fails with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import cache
from types import GenericAlias
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, Field, ValidationError, create_model

from draftsman import plugins
from draftsman.channels import registry
from draftsman.errors import ConfigError
from draftsman.settings.people import PersonSettings
from draftsman.settings.section import ChannelSection, NamedSection, PackageSection, Section

M = TypeVar("M", bound=BaseModel)


def names_channels(
    data: Mapping[str, Any], variables: Mapping[str, str], model: type[BaseModel]
) -> bool:
    """Return whether a file or the variables have tables or accounts that `model` has not.

    Most commands need none, and the declarations of channels need not be found.
    """
    people = data.get("people")
    keys = (key for person in _tables(people) for key in person)
    parts = (name.upper().removeprefix("DRAFTSMAN_").split("__") for name in variables)
    own = {"CONFIG", *(name.upper() for name in model.model_fields)} - {"PEOPLE"}
    return (
        any(key not in model.model_fields for key in data)
        or any(key not in PersonSettings.model_fields for key in keys)
        or any(part[0] not in own for part in parts)
    )


def _tables(people: Any) -> list[Mapping[str, Any]]:
    values = people.values() if isinstance(people, Mapping) else ()
    return [person for person in values if isinstance(person, Mapping)]


@cache
def with_channels(base: type[M]) -> type[M]:
    """Return the model of the settings with the tables and accounts of all channels."""
    tables: dict[str, Any] = {}
    accounts: list[type[Section]] = []
    unusable: list[str] = []
    for name in plugins.names(plugins.CHANNELS):
        try:
            section, account = parts_of(name, base)
        except ConfigError:
            unusable.append(name)
            continue
        if section is not None:
            tables[section.table] = section.field()
        if account is not None:
            accounts.append(account)
    known = tables.keys() | base.model_fields.keys()
    ignored: dict[str, Any] = {name: (Any, None) for name in unusable if name not in known}
    unchecked: dict[str, Any] = dict.fromkeys(unusable, (str | tuple[str, ...] | None, None))
    bases: Any = (*reversed(accounts), PersonSettings)
    person = create_model("PersonSettings", __base__=bases, **unchecked)
    person.__doc__ = PersonSettings.__doc__
    people: Any = (GenericAlias(dict, (str, person)), Field({}, examples=[{"anna": {}}]))
    return create_model(base.__name__, __base__=base, people=people, **ignored, **tables)


def person_model(model: type[BaseModel]) -> type[PersonSettings]:
    """Return the model of `[people.NAME]` in a model of the settings."""
    person: type[PersonSettings] = get_args(model.model_fields["people"].annotation)[1]
    return person


def parts_of(
    name: str, base: type[BaseModel]
) -> tuple[type[PackageSection] | None, type[Section] | None]:
    """Return the models of a channel's table and account; raises ConfigError for a wrong one."""
    channel = registry.channel(name)
    plugin = plugins.find(plugins.CHANNELS, name)
    section = account = None
    if channel.settings is not None:
        section = plugins.load_part(plugin, channel.settings)
        if not (isinstance(section, type) and issubclass(section, ChannelSection | NamedSection)):
            problem = f"{channel.settings} is no ChannelSection and no NamedSection"
            raise ConfigError(f"{plugin} cannot be used: {problem}")
        if section.table != channel.table or section.table in base.model_fields:
            raise ConfigError(f"{plugin} cannot be used: its table is [{section.table}]")
    if channel.account is not None:
        account = plugins.load_part(plugin, channel.account)
        if not (isinstance(account, type) and issubclass(account, Section)):
            raise ConfigError(f"{plugin} cannot be used: {channel.account} is no Section")
        if [*account.model_fields] != [name] or name in PersonSettings.model_fields:
            raise ConfigError(f"{plugin} cannot be used: an account is a single field, {name}")
    return section, account


def account_id(name: str, text: str) -> str:
    """Return the id of an account of a channel as it is stored, such as in lower case.

    A text that is no account there, or of no channel here, is returned as it is.
    """
    channel = registry.find(name)
    if channel is None or channel.account is None:
        return text
    section = plugins.load_part(plugins.find(plugins.CHANNELS, name), channel.account)
    try:
        account: str | tuple[str] = getattr(section.model_validate({name: text}), name)
    except ValidationError:
        return text
    return account if isinstance(account, str) else account[0]


def problems(base: type[BaseModel]) -> Iterator[tuple[plugins.Plugin, str]]:
    """Yield the channels whose table or account cannot be used, and why."""
    for channel in registry.channels():
        try:
            parts_of(channel.name, base)
        except ConfigError as error:
            yield plugins.find(plugins.CHANNELS, channel.name), str(error)


def section_of(settings: object, name: str) -> Any:
    """Return the table or tables of a channel, or None; raises ConfigError if it cannot be used."""
    channel = registry.channel(name)
    if channel.settings is None:
        return None
    return plugins.load_part(plugins.find(plugins.CHANNELS, name), channel.settings).of(settings)


def target_names(settings: object, name: str) -> Set[str] | None:
    """Return the targets of a channel if they are its tables, else None."""
    tables = None if registry.find(name) is None else section_of(settings, name)
    return tables.keys() if isinstance(tables, dict) else None
