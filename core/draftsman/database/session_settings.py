"""Settings of draftsman's sessions, whatever the role, the database and the server define.

They are start-up options of a direct connection, which no session of another program can inherit.
Behind a transaction pooler each transaction sets them for itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from draftsman.errors import InvalidDatabaseUrl
from draftsman.processes.process_name import PROCESS_NAME
from draftsman.text import digest

MARK: Final = "draftsman.start_up_options"
"""Setting that shows that the server got the start-up options: some poolers ignore them."""
PINNED: Final[Mapping[str, str]] = {
    "array_nulls": "on",
    "bytea_output": "hex",
    "datestyle": "ISO, MDY",
    "extra_float_digits": "1",
    "gin_fuzzy_search_limit": "0",
    "idle_in_transaction_session_timeout": "10min",
    "intervalstyle": "postgres",
    # statements read few rows: compiling them takes longer than running them
    "jit": "off",
    "lock_timeout": "0",
    "quote_all_identifiers": "off",
    "row_security": "on",
    "search_path": "pg_catalog",
    "standard_conforming_strings": "on",
    "timezone": "UTC",
    "transform_null_equals": "off",
}
"""Settings of every transaction."""
OF_SESSIONS: Final[Mapping[str, str]] = {
    "default_transaction_deferrable": "off",
    "default_transaction_isolation": "read committed",
    "idle_session_timeout": "0",
    # the server notices a client whose host has vanished, and releases its locks
    "tcp_keepalives_count": "3",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_user_timeout": "60s",
    MARK: "on",
}
"""Settings of a direct connection alone; a transaction behind a pooler begins with its own mode."""
INDEX_SCANS: Final[Mapping[str, str]] = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_mergejoin": "off",
    "enable_sort": "off",
}
"""Settings of a session whose statements are planned once, with index scans and nested loops. Hash
joins stay: the trigger that writes events joins two transition tables, which have no index."""
KEEPALIVE: Final[Mapping[str, int]] = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Parameters of libpq: a connection whose packets are dropped ends after a minute."""


def milliseconds(seconds: float) -> str:
    """Return the value of a timeout of the server, for which 0 would be unlimited."""
    return f"{max(1, round(seconds * 1000))}ms"


def reply_margin(statement_timeout: float) -> float:
    """Return the seconds that a reply may take beyond the server's own timeout."""
    return min(5.0, max(1.0, statement_timeout / 4))


def start_up_options(settings: Mapping[str, str]) -> str:
    """Return the settings as options of the server's command line."""
    return " ".join(f"-c {name}={_escaped(value)}" for name, value in settings.items())


def conninfo(url: str, settings: Mapping[str, str], connect_timeout: float) -> str:
    """Return the connection string of a session with these settings.

    Without settings it has no start-up options. Parameters of the URL are kept; its start-up
    options, or those of `PGOPTIONS`, come first. The session has the name of this process.
    """
    try:
        url_parameters = conninfo_to_dict(url)
    except ProgrammingError as error:
        raise InvalidDatabaseUrl(f"the database URL is invalid: {str(error).strip()}") from None
    parameters: dict[str, Any] = {
        name: value for name, value in KEEPALIVE.items() if name not in url_parameters
    }
    # `application_name` of the URL, or PGAPPNAME, comes first
    parameters["fallback_application_name"] = PROCESS_NAME.get()
    parameters["client_encoding"] = "UTF8"
    parameters["connect_timeout"] = max(2, round(connect_timeout))
    if settings:
        earlier = url_parameters.get("options") or os.environ.get("PGOPTIONS", "")
        parameters["options"] = f"{earlier} {start_up_options(settings)}".strip()
    return make_conninfo(url, **parameters)


def database_key(url: str) -> str:
    """Return a short key of a database, without its password, for the names of files."""
    return digest({**conninfo_to_dict(url), "password": None})[:12]


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
