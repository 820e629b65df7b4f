"""Settings that most commands need, read without pydantic, which takes a third of their start-up.

They are read only if nothing else of the configuration can be invalid: no `DRAFTSMAN_*` variables
but those of `VARIABLES`, and either no file, or the file that was validated last. A stamp in the
user's cache directory has the digest of that file; it has no values. Otherwise, and for any other
setting, `draftsman.settings` loads and validates the whole configuration.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from platformdirs import user_cache_dir, user_config_dir, user_data_dir

SYSTEM_CONFIG = Path("/etc/draftsman/draftsman.toml")
VARIABLES: Final = {
    "DRAFTSMAN_DATABASE_URL": "database_url",
    "DRAFTSMAN_LISTEN_URL": "listen_url",
    "DRAFTSMAN_DATA_DIR": "data_dir",
}
"""Setting of each variable that is read here."""
FALLBACK_URL: Final = "DATABASE_URL"
"""Variable of the database if nothing else names it, as in other tools."""
_OTHER_VARIABLES: Final = {"DRAFTSMAN_CONFIG"}
TABLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "database": {"pool_size": 5, "connect_timeout": 10.0, "statement_timeout": 60.0},
    "embedded": {"idle_timeout": 600.0},
    "worker": {"heartbeat": 30.0, "lease": 300.0},
    "questions": {
        "expires_in": 86_400.0,
        "self_approval": False,
        "undo": 10.0,
        "escalate_to": None,
        "quiet_hours": None,
        "working_hours": None,
        "holidays": None,
        "timezone": "UTC",
    },
}
"""Defaults of the settings that are read here, by table; the models have the same."""
UNSET_TABLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "retention": {"events": None, "logs": None, "archive_dir": None},
    "sweeps": {"limit": 100},
}
"""Defaults of tables whose settings are those of the models if the file has the table."""
PERSON: Final[Mapping[str, Any]] = {
    "login": None,
    "roles": (),
    "timezone": None,
    "quiet_hours": None,
    "working_hours": None,
    "holidays": None,
}
"""Defaults of a table of `[people]`; its other keys are accounts."""
_SCHEME: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?[a-z][a-z0-9+.-]*:(?://)?", re.IGNORECASE)
POSTGRESQL: Final = re.compile(
    r"(?:jdbc:)?(?:postgres(?:ql)?(?:\+[a-z0-9_]+)?|postgis|pgsql|psql)://", re.IGNORECASE
)
"""The scheme of a URL of PostgreSQL, as draftsman and other programs write it."""
_OF_ORMS: Final = frozenset(
    {
        "connection_limit",
        "pgbouncer",
        "pool_timeout",
        "prepared_statement_cache_size",
        "schema",
        "statement_cache_size",
    }
)
"""Parameters of URLs that set the connections of an ORM, such as Prisma, and not the database."""
_TYPES: Final = {float: (float, int), type(None): (str,), tuple: (list,)}
"""Types of a value in the file, by the type of its default, if they differ."""


class SecretText:
    """A secret; its representation does not show it."""

    def __init__(self, value: str) -> None:
        self._value = value

    def get_secret_value(self) -> str:
        """Return the secret."""
        return self._value


class BasicTable:
    """The settings of a table that are read here; `load` returns the model for all others."""

    def __init__(self, values: Mapping[str, Any], load: Callable[[], Any]) -> None:
        vars(self).update(values)
        self._load = load

    def __getattr__(self, name: str) -> Any:
        """Return a setting that was not read here."""
        if name.startswith("_"):  # of a copy that has no values yet
            raise AttributeError(name)
        return getattr(self._load(), name)


class BasicSettings(BasicTable):
    """The settings and tables that are read here."""

    uses_fallback_url = False


def read(config: Path | None, load: Callable[[], Any]) -> BasicSettings | None:
    """Return the settings, or None if the whole configuration must be validated."""
    try:
        variables = _variables()
        path = config_path(config)
        data = {} if path is None else _validated_data(path)
        values = {**data, **variables}
        fallback = None if "database_url" in values else fallback_url()
        if fallback is not None:
            values["database_url"] = fallback
        settings = BasicSettings(_values(values, load), load)
        settings.uses_fallback_url = fallback is not None
        return settings
    except (OSError, ValueError):
        return None


def digest(config: Path | None) -> str | None:
    """Return the digest of the configuration file, and of the code that validates it.

    None without a file, or with variables that may replace an invalid value of the file.
    """
    with contextlib.suppress(OSError, ValueError):
        if _variables() is not None and (path := config_path(config)) is not None:
            return _digest(path.read_bytes())
    return None


def remember(
    validated: str, config: Path | None, accounts: Mapping[str, Mapping[str, tuple[str, ...]]]
) -> None:
    """Write the stamp of a validated file, unless the file has changed since.

    `accounts` are those of its people as they were validated: a file that writes one differently,
    such as in upper case, has no stamp.
    """
    if digest(config) != validated or _written_accounts(config) != accounts:
        return
    stamp = _stamp()
    written = stamp.with_name(f"{stamp.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        stamp.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(written, flags, 0o600), "w", encoding="ascii") as file:
            file.write(validated)
        written.replace(stamp)


def _written_accounts(config: Path | None) -> dict[str, dict[str, tuple[str, ...]]]:
    import tomllib

    path = config_path(config)
    people = {} if path is None else tomllib.loads(path.read_text("utf-8")).get("people", {})
    return {name: accounts_of(person) for name, person in people.items()}


def config_path(explicit: Path | None) -> Path | None:
    """Return the explicit or first existing configuration file, or None."""
    if explicit is not None:
        return explicit
    if name := os.environ.get("DRAFTSMAN_CONFIG"):
        return Path(name)
    user = user_config_path()
    # Path.is_file raises for an inaccessible folder, such as that of root under `sudo -u`
    return next((path for path in (user, SYSTEM_CONFIG) if os.path.isfile(path)), None)  # noqa: PTH113


def user_config_path() -> Path:
    """Return the configuration file of this user, which may not exist."""
    return Path(user_config_dir("draftsman", appauthor=False)) / "draftsman.toml"


def default_data_dir() -> Path:
    """Return the default data directory: for root that of the system, if XDG_DATA_HOME is unset."""
    if os.geteuid() == 0 and not os.environ.get("XDG_DATA_HOME"):
        return Path("/var/lib/draftsman")
    return Path(user_data_dir("draftsman", appauthor=False))


def expand_user(path: str) -> str:
    """Replace `~` with the user's home; raises ValueError for an unknown user."""
    path = os.path.expanduser(path)  # noqa: PTH111
    if path.startswith("~"):
        raise ValueError("unknown user; use an absolute path")
    return path


def fallback_url() -> str | None:
    """Return the value of `DATABASE_URL`, None if it is unset or empty; raises ValueError."""
    url = os.environ.get(FALLBACK_URL)
    return read_url(url) if url else None


def read_url(url: str) -> str:
    """Return a URL or connection string as libpq takes it, without the additions of other programs.

    These are a driver in the scheme (`postgresql+asyncpg://`, `jdbc:postgresql://`), and settings
    of an ORM's own pool or schema. Raises ValueError for another database, naming its scheme.
    """
    scheme = _SCHEME.match(url)
    if scheme is None:
        if url and "=" not in url:
            raise ValueError("must be a URL: postgresql://user@host/database")
        return url
    if POSTGRESQL.fullmatch(scheme[0]) is None:
        raise ValueError(f"{scheme[0]} is no PostgreSQL database: use postgresql://user@host/name")
    if scheme[0] not in ("postgresql://", "postgres://"):
        url = f"postgresql://{url[scheme.end() :]}"
    if not _is_encoded(url):
        raise ValueError("a password in a URL must be percent-encoded: %25 for %, %40 for @")
    address, _, query = url.partition("?")
    parameters = [item for item in query.split("&") if item.partition("=")[0] not in _OF_ORMS]
    return "?".join(part for part in (address, "&".join(parameters)) if part)


def _is_encoded(url: str) -> bool:
    """Return whether a URL is percent-encoded."""
    location = url.partition("://")[2].partition("?")[0]
    authority = re.split(r"[/#]", location, maxsplit=1)[0]
    if re.search(r"%(?![0-9A-Fa-f]{2})|\s", url) is not None:
        return False
    return authority.count("@") == location.count("@") <= 1


def _variables() -> dict[str, str]:
    """Return the settings of the variables; raises ValueError for other variables."""
    settings = {}
    for name, value in os.environ.items():
        if not value or not name.upper().startswith("DRAFTSMAN_") or name in _OTHER_VARIABLES:
            continue
        if name not in VARIABLES:
            raise ValueError(name)
        settings[VARIABLES[name]] = value
    return settings


def _validated_data(path: Path) -> dict[str, Any]:
    """Return the content of the file; raises ValueError unless its stamp exists."""
    data = path.read_bytes()
    if _read_stamp() != _digest(data):
        raise ValueError(path)
    import tomllib

    return tomllib.loads(data.decode())


def _values(data: Mapping[str, Any], load: Callable[[], Any]) -> dict[str, Any]:
    """Return the settings; raises ValueError for values that only the models convert."""
    values: dict[str, Any] = {
        name: _table(data.get(name, {}), defaults, partial(_loaded, load, name))
        for name, defaults in TABLES.items()
    }
    for name, defaults in UNSET_TABLES.items():
        if name not in data:
            values[name] = _table({}, defaults, partial(_loaded, load, name))
    values["questions"].expires_in = values["questions"].expires_in or None
    values["people"] = {
        name: _person(person, partial(_loaded_person, load, name))
        for name, person in data.get("people", {}).items()
    }
    values["groups"] = data.get("groups", {})
    if "types" not in data:
        values["types"] = {}
    for name in ("database_url", "listen_url"):
        url = data.get(name)
        if url is not None:
            url = read_url(_checked(url, ""))
        values[name] = None if url is None else SecretText(url)
    folder = data.get("data_dir")
    values["data_dir"] = (
        default_data_dir() if folder is None else Path(expand_user(_checked(folder, "")))
    )
    return values


def _loaded(load: Callable[[], Any], table: str) -> Any:
    return getattr(load(), table)


def _loaded_person(load: Callable[[], Any], name: str) -> Any:
    return load().people[name]


def _table(
    table: Mapping[str, Any], defaults: Mapping[str, Any], load: Callable[[], Any]
) -> BasicTable:
    read_here = {name: _checked(table.get(name, value), value) for name, value in defaults.items()}
    return BasicTable(read_here, load)


def _person(person: Mapping[str, Any], load: Callable[[], Any]) -> BasicTable:
    table = _table(person, PERSON, load)
    vars(table)["accounts"] = accounts_of(person)
    return table


def accounts_of(person: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the accounts of a table of `[people]` by channel, as the file has them."""
    accounts = {key: person[key] for key in sorted(person) if key not in PERSON and person[key]}
    return {
        key: (value,) if isinstance(value, str) else tuple(value) for key, value in accounts.items()
    }


def _checked(value: Any, default: Any) -> Any:
    """Return the value; raises ValueError unless its type is that of the default."""
    allowed = _TYPES.get(type(default), (type(default),))
    if value is not default and type(value) not in allowed:
        raise ValueError(value)
    return value


def _digest(data: bytes) -> str:
    from hashlib import sha256

    with os.scandir(Path(__file__).with_name("settings")) as files:
        code = sorted(
            (file.path, file.stat().st_size, file.stat().st_mtime_ns)
            for file in files
            if file.is_file()
        )
    # pip changes the time of the folder of packages, whose channels validate their tables
    folders = [path for path in sys.path if path.endswith("-packages")]
    packages = [(path, os.stat(path).st_mtime_ns) for path in folders]  # noqa: PTH116
    return sha256(repr((code, packages)).encode() + data).hexdigest()


def _stamp() -> Path:
    return Path(user_cache_dir("draftsman", appauthor=False)) / "validated-config"


def _read_stamp() -> str:
    """Return the digest of the stamp; raises OSError, ValueError if it is not private."""
    with os.fdopen(os.open(_stamp(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077:
            raise ValueError("the stamp is not a private file")
        if status.st_uid != os.geteuid():
            raise ValueError("the stamp belongs to another user")
        return file.read(100).decode("ascii")
