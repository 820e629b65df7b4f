"""Files of migrations: those of draftsman, and those of the packages of channels.

The files of a package have the name of its channel before their own: `mail/0001_boxes`,
`functions/mail/boxes`. The file `functions/CHANNEL/channel` is written here from the declaration
of the channel, so that a package without tables needs no file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from draftsman import plugins, resources
from draftsman.channels import registry
from draftsman.errors import ConfigError

FUNCTIONS: Final = "functions/"
"""How the names of files of functions begin."""
DECLARATION: Final = "channel"
"""Name of the file that declares the channel of a package."""
PSQL_COMMAND: Final = re.compile(r"^(?:SELECT .* \\gset|\\[a-z].*)\n", re.MULTILINE)
"""A command of psql in a migration file, which stops psql if the file is already applied."""
DEFINITION: Final = re.compile(
    r"^CREATE (?:OR REPLACE )?(?:CONSTRAINT )?"
    r"(?:(?P<function>FUNCTION draftsman\.\w+)\((?P<parameters>[^)]*)\)"
    r"|(?P<view>VIEW draftsman\.\w+)"
    r"|(?P<rule>(?:TRIGGER|POLICY) \w+)\s[^;]*?\s?ON (?P<table>draftsman\.\w+))",
    re.MULTILINE,
)
"""The head of a statement that defines an object in a file of functions."""
_RECORD: Final = """
INSERT INTO draftsman.schema_migrations (name) VALUES ('{name}') ON CONFLICT DO NOTHING;
"""
_RECORD_FUNCTIONS: Final = """
INSERT INTO draftsman.schema_functions (name) VALUES ('{name}')
    ON CONFLICT (name) DO UPDATE SET checksum = NULL, applied_at = clock_timestamp();
SET LOCAL check_function_bodies = off;
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """A file; `applied_at` is None if it is pending.

    The name of a file of functions begins with `functions/`. `source` is the package of a channel,
    None for the files of draftsman.
    """

    name: str
    sql: str
    applied_at: datetime | None = None
    source: Source | None = None

    @property
    def statements(self) -> str:
        """The file without the commands of psql; that of a package with its record."""
        if self.source is None:
            return PSQL_COMMAND.sub("", self.sql)
        record = _RECORD_FUNCTIONS if self.has_functions else _RECORD
        return f"{record.format(name=self.recorded_name)}{self.sql}"

    @property
    def checksum(self) -> str:
        """SHA-256 of the file, in hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def has_functions(self) -> bool:
        """Whether the file has the current text of functions, instead of a number."""
        return self.name.startswith(FUNCTIONS)

    @property
    def recorded_name(self) -> str:
        """The name in the table of its kind."""
        return self.name.removeprefix(FUNCTIONS)

    @property
    def channel(self) -> str:
        """The channel of its package; "" for a file of draftsman."""
        return "" if self.source is None else self.source.channel

    @property
    def is_own(self) -> bool:
        """Whether it belongs to draftsman, so that it is applied with the files of the core."""
        return self.source is None or self.source.package == plugins.OWN

    @property
    def objects(self) -> list[str]:
        """The objects that a file of functions defines, as `DROP` names them."""
        return [_object(match) for match in DEFINITION.finditer(self.sql)]


@dataclass(frozen=True, slots=True)
class Source:
    """The package of a channel, which has files of migrations."""

    channel: str
    package: str
    version: str

    def __str__(self) -> str:
        return f"channel {self.channel!r} of {self.package} {self.version}"


def _object(match: re.Match[str]) -> str:
    if view := match["view"]:
        return view
    if rule := match["rule"]:
        return f"{rule} ON {match['table']}"
    parameters = re.sub(r" DEFAULT [^,]*", "", " ".join(match["parameters"].split()))
    types = [part.strip().partition(" ")[2] for part in parameters.split(",") if part]
    return f"{match['function']}({', '.join(types)})"


def channels_of(files: Sequence[Migration]) -> list[str]:
    """Return the channels of the files, with "" for draftsman itself."""
    return list(dict.fromkeys(item.channel for item in files))


def core_files() -> list[Migration]:
    """Return the files of draftsman: the numbered ones, then those of functions."""
    files = [*resources.migrations(), *resources.functions()]
    return [Migration(name, sql) for name, sql in files]


def available() -> list[Migration]:
    """Return the files of `load_files`."""
    return load_files()[0]


def load_files() -> tuple[list[Migration], dict[str, str]]:
    """Return the files of this version and of the packages, in order, and their problems.

    Draftsman's own channels are before others, and numbered files before those of functions. The
    files of a package that cannot be used are left out. Its problem is by the name of its channel;
    that of a plugin that is no channel, by its description.
    """
    own, others = core_files(), list[Migration]()
    problems = {str(plugin): problem for plugin, problem in registry.problems()}
    for source in sources():
        try:
            files = package_files(source)
            _check_objects(source, files, [*own, *others])
        except ConfigError as error:
            problems[source.channel] = str(error)
        else:
            (own if files[0].is_own else others).extend(files)
    return [*sorted(own, key=lambda item: item.has_functions), *others], problems


def _check_objects(source: Source, files: Sequence[Migration], before: Sequence[Migration]) -> None:
    """Raise ConfigError if a package defines an object of draftsman or of another package."""
    owners = {_base(name): item.source for item in before for name in item.objects}
    for item in files:
        for name in map(_base, item.objects):
            if name in owners:
                owner = owners[name] or plugins.OWN
                raise ConfigError(f"{source} redefines {name} of {owner} in {item.name}")


def _base(name: str) -> str:
    """Return an object without the types of its parameters, which may be spelled differently."""
    return name.partition("(")[0]


def sources() -> Iterator[Source]:
    """Yield the packages of the channels that can be used, by channel."""
    for plugin in registry.channels():
        entry = plugins.find(plugins.CHANNELS, plugin.name)
        yield Source(plugin.name, entry.package, entry.version)


def package_files(source: Source) -> list[Migration]:
    """Return the files of a package; raises ConfigError, which names it."""
    plugin = registry.channel(source.channel)
    facts = json.dumps(asdict(plugin.facts), sort_keys=True).replace("'", "''")
    declaration = (
        f"SELECT draftsman.declare_channel('{source.channel}', '{source.package}', '{facts}');\n"
    )
    files = [(f"{FUNCTIONS}{DECLARATION}", declaration)]
    if plugin.migrations is not None:
        try:
            files += resources.package_migrations(plugin.migrations)
        except (ImportError, OSError, ValueError) as error:
            raise ConfigError(
                f"{source} has no readable migrations in {plugin.migrations}: {error}"
            ) from error
    migrations = [Migration(_name(source, name), sql, source=source) for name, sql in files]
    return sorted(migrations, key=lambda item: item.has_functions)


def _name(source: Source, name: str) -> str:
    """Return the name of a file with that of its channel."""
    kind = FUNCTIONS if name.startswith(FUNCTIONS) else ""
    return f"{kind}{source.channel}/{name.removeprefix(FUNCTIONS)}"
