"""Persistent preferences: saved views and the last theme.

Stored as a JSON file in the user's state directory. A lock file serializes writers, and a rename
replaces the file atomically. Unknown keys are preserved, and an unreadable file is never
overwritten.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from platformdirs import user_state_dir

from draftsman.errors import ConfigError, NotFound, Refused, UsageError
from draftsman_tui.dashboard.tables import saved_views
from draftsman_tui.dashboard.tables.saved_views import BUILTIN_VIEWS, View


def preferences_path() -> Path:
    """Return the file's path: `~/.local/state/draftsman/dashboard.json` on Linux."""
    return Path(user_state_dir("draftsman", appauthor=False)) / "dashboard.json"


class Preferences:
    """Preferences file. Each call reads it, since another dashboard may have changed it."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or preferences_path()

    @property
    def theme(self) -> str | None:
        """The last theme; None also if the file cannot be read."""
        try:
            name = self._read().get("theme")
        except ConfigError:
            return None
        return name if isinstance(name, str) else None

    def views(self) -> dict[str, View]:
        """Return the views by name, built-in views first.

        Raises ConfigError. Invalid views are omitted; see `problems`.
        """
        return BUILTIN_VIEWS | self._read_views()[0]

    def problems(self) -> list[str]:
        """Return a line for each invalid entry."""
        try:
            return self._read_views()[1]
        except ConfigError as error:
            return [str(error)]

    def _read_views(self) -> tuple[dict[str, View], list[str]]:
        """Return the valid views by name, and a line for each invalid view."""
        views = {}
        problems = []
        for name, data in self._saved().items():
            try:
                views[name] = saved_views.read(data)
            except UsageError as error:
                problems.append(f"{self.path}: invalid view {name!r}: {error}")
        return views, problems

    def save_theme(self, name: str) -> None:
        """Save the theme; raises ConfigError or Refused."""
        self._change(lambda data: data.update(theme=name))

    def save(self, name: str, view: View) -> bool:
        """Save a view and return whether it replaced another; raises ConfigError or Refused."""
        previous = self._saved().get(name)
        self._change(lambda data: self._views_of(data).update({name: saved_views.to_json(view)}))
        return previous is not None

    def has(self, name: str) -> bool:
        """Return whether a saved view has the name."""
        return name in self._saved()

    def drop(self, name: str) -> None:
        """Delete a view; raises NotFound, ConfigError or Refused."""

        def change(data: dict[str, Any]) -> None:
            if self._views_of(data).pop(name, None) is None:
                raise NotFound(f"no saved view {name!r}; :views lists the saved views")

        self._change(change)

    def _saved(self) -> dict[str, Any]:
        return self._views_of(self._read())

    def _views_of(self, data: dict[str, Any]) -> dict[str, Any]:
        views = data.setdefault("views", {})
        if not isinstance(views, dict):
            raise self._invalid("views must be an object")
        return views

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise self._invalid(f"{error}") from None
        if not isinstance(data, dict):
            raise self._invalid("expected an object")
        return data

    def _invalid(self, reason: str) -> ConfigError:
        return ConfigError(
            f"{self.path} is not a valid preferences file: {reason}; fix or remove it"
        )

    def _change(self, change: Callable[[dict[str, Any]], None]) -> None:
        try:
            with self._locked():
                data = self._read()
                change(data)
                self._write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise Refused(f"cannot write {self.path}: {error.strerror}") from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write(self, text: str) -> None:
        """Replace the file atomically, synced to disk."""
        descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=".dashboard-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
