"""Former names of configuration keys and command-line options, accepted for one release.

A former name warns with the current name; giving both is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from draftsman.errors import ConfigError

CONFIG_KEYS: Final[Mapping[str, str]] = {
    "dashboard.keys.job-chain": "job-related",
    "dashboard.keys.next-part": "next-tab",
    "dashboard.keys.previous-part": "previous-tab",
    "embedded.idle_stop": "idle_timeout",
    "http.redirects": "max_redirects",
    "llm.*.key": "api_key",
    "people.*.quiet": "quiet_hours",
    "questions.quiet": "quiet_hours",
    "retention.archive": "archive_dir",
    "sandbox.uids": "uid_count",
    "slack.strangers": "external_users",
    "sweeps.reap_after": "deregister_after",
    "tools.*.exits": "exit_codes",
    "tools.*.input": "input_schema",
    "tools.*.output": "output_schema",
    "trello.queued": "queued_label",
}
"""Current key in the same table, by the former path; `*` is any name. Variables follow."""
_BOARD_OPTIONS: Final = {
    "--leave-existing": "--exclude-existing",
    "--queued": "--queued-label",
    "--take-existing": "--include-existing",
}
OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "boards add": _BOARD_OPTIONS,
    "boards set": _BOARD_OPTIONS,
    "people set": {"--quiet": "--quiet-hours"},
    "redeliver": {"--dead": "--dead-letters"},
}
"""Current option, by command and former option."""
VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    "deliveries --status": {"dead": "dead_letter", "unknown": "unconfirmed"},
    "sweep": {"reap": "deregister"},
}
"""Current value, by option and former value."""


COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "dead": {"TRIES": "RUNS"},
    "deliveries": {"TRIES": "ATTEMPTS"},
    "inbox": {"ASKED": "WAITS", "TEXT": "ABOUT"},
    "jobs": {"TRIES": "RUNS"},
}
"""Current column heading of a saved view of the dashboard, by table and former heading."""
JSON_KEYS: Final[Mapping[str, Mapping[str, str]]] = {
    "boards list": {"checks.then": "hint"},
    "boards remove": {"webhook_left": "webhook_warning"},
    "boards test": {"checks.then": "hint"},
    "boards webhook add": {"how": "outcome"},
    "boards webhook repair": {"how": "outcome"},
    "doctor": {"broken.how": "problem", "checks.then": "hint"},
    "people import": {"changes.what": "kind"},
    "people remove": {"changes.what": "kind"},
    "people set": {"changes.what": "kind"},
    "retry": {"how": "outcome", "wanted": "matches"},
    "show": {
        "chain": "retry_chain",
        "joined": "joined_requests",
        "waits": "wait_reason",
        "wait_reason.then": "next_step",
    },
    "soak": {
        "could_not_run": "unsupported_faults",
        "effects_doubled": "effects_duplicated",
        "effects_refused": "effects_rejected",
        "ended": "finished",
        "ended_by_themselves": "unexpected_exits",
        "jobs_ended_wrongly": "jobs_wrong_outcome",
        "jobs_run_twice_at_once": "jobs_run_concurrently",
    },
    "stats": {"at_least": "capped"},
    "submit": {"how": "outcome"},
    "sweep": {"how": "state"},
    "why": {"then": "next_step"},
    "workers": {"silent": "heartbeat_age"},
}
"""Current key in the same object, by command and former path, through lists."""
JSON_VARIABLE: Final = "DRAFTSMAN_FORMER_JSON_KEYS"
"""Variable that adds the former keys to JSON output."""
Location = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FormerKey:
    """A former key in the file or in a variable, with its current location."""

    former: Location
    current: Location
    path: Path | None
    """The file, None for a variable."""

    @property
    def warning(self) -> str:
        """The deprecation, with the file or the variable."""
        former, current = ".".join(self.former), ".".join(self.current)
        if self.path is not None:
            return f"{self.path}: {deprecation(former, current)}"
        if (variable := variable_of(self.former)) is None:
            return deprecation(former, current)
        if variable.upper() != variable_name(self.former):  # JSON of a table, or an inner variable
            return f"{variable}: {deprecation(former, current)}"
        return deprecation(variable, variable_name(self.current))


class CurrentNames(PydanticBaseSettingsSource):
    """Settings of another source with their current names."""

    def __init__(self, source: PydanticBaseSettingsSource) -> None:
        super().__init__(source.settings_cls)
        self._source = source

    def __call__(self) -> dict[str, Any]:
        """Return the settings; raises ConfigError for a key with both names."""
        return replace_keys(self._source(), None)

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the value of a field from the other source."""
        return self._source.get_field_value(field, field_name)


used_keys: ContextVar[list[FormerKey] | None] = ContextVar("used_keys", default=None)
"""Receives the former keys that `replace_keys` replaces."""


def deprecation(former: str, current: str) -> str:
    """Return the text of a warning."""
    return f"{former} is deprecated; use {current}"


def variable_name(location: Location) -> str:
    """Return the name of the variable of a key."""
    return "DRAFTSMAN_" + "__".join(location).upper()


def variable_of(location: Location) -> str | None:
    """Return the set variable that contains the key, or None."""
    names = {name.upper(): name for name in os.environ}
    prefixes = (variable_name(location[:length]) for length in range(len(location), 0, -1))
    return next((names[name] for name in prefixes if name in names), None)


def replace_keys(data: Mapping[str, Any], path: Path | None) -> dict[str, Any]:
    """Return the configuration of the file, or of the variables (None), with the current keys.

    Raises ConfigError for a key with both names.
    """
    result = dict(data)
    used = used_keys.get()
    for former, current in CONFIG_KEYS.items():
        for key in _replace(result, former.split("."), current, (), path):
            if used is not None:
                used.append(key)
    return result


def add_former_keys(data: Any, command: str) -> list[str]:
    """Add the former keys to the JSON document of a command; return a warning for each."""
    warnings = []
    for former, current in JSON_KEYS.get(command, {}).items():
        if _add(data, former.split("."), current):
            warnings.append(f"{JSON_VARIABLE}: {deprecation(former.split('.')[-1], current)}")
    return warnings


def _add(data: Any, former: list[str], current: str) -> bool:
    if isinstance(data, list):
        added = [_add(item, former, current) for item in data]
        return any(added)
    if not isinstance(data, dict):
        return False
    name, *rest = former
    if rest:
        return _add(data.get(name), rest, current)
    if current in data:
        data[name] = data[current]
    return current in data


def _replace(
    data: dict[str, Any], former: list[str], current: str, above: Location, path: Path | None
) -> Iterator[FormerKey]:
    """Replace a former key of `CONFIG_KEYS` in a dictionary; inner dictionaries are copied."""
    name, *rest = former
    if rest:
        for table in list(data) if name == "*" else [name]:
            if isinstance(inner := data.get(table), dict):
                data[table] = inner = dict(inner)
                yield from _replace(inner, rest, current, (*above, table), path)
    elif name in data:
        key = FormerKey((*above, name), (*above, current), path)
        if current in data:
            raise ConfigError(f"{key.warning}, which is also set; remove {name}")
        data[current] = data.pop(name)
        yield key
