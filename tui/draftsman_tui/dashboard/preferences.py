"""What outlives a dashboard: saved views, and the theme that was chosen last.

One JSON file in the user's state directory. Dashboards that write at the same time take turns, by
a lock beside it; a reader sees the old file or the new one. What is not understood in it is left
as it is, and a file that cannot be read is never written over.
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
from draftsman_tui.dashboard import saved_views
from draftsman_tui.dashboard.saved_views import BUILTIN_VIEWS, View


def preferences_path() -> Path:
    """Return where the file is: `~/.local/state/draftsman/dashboard.json` on Linux."""
    return Path(user_state_dir("draftsman", appauthor=False)) / "dashboard.json"


class Preferences:
    """The file. Each call reads it anew: another dashboard may have written."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or preferences_path()

    @property
    def theme(self) -> str | None:
        """The theme that was chosen last; None as well where the file cannot be read."""
        try:
            found = self._read().get("theme")
        except ConfigError:
            return None
        return found if isinstance(found, str) else None

    def views(self) -> dict[str, View]:
        """Return every view by its name, those that are there by themselves first.

        Raises ConfigError; a view that is not understood is left out, see `problems`.
        """
        found = dict(BUILTIN_VIEWS)
        for name, data in self._saved().items():
            try:
                found[name] = saved_views.read(data)
            except UsageError:
                continue
        return found

    def problems(self) -> list[str]:
        """Return a line for everything that cannot be used."""
        try:
            views = self._saved()
        except ConfigError as error:
            return [str(error)]
        found = []
        for name, data in views.items():
            try:
                saved_views.read(data)
            except UsageError as error:
                found.append(f"{self.path}: the view {name!r} cannot be used: {error}")
        return found

    def save_theme(self, name: str) -> None:
        """Remember the theme; raises ConfigError, Refused."""
        self._change(lambda data: data.update(theme=name))

    def save(self, name: str, view: View) -> bool:
        """Keep a view; return whether there was another of that name. Raises as `keep_theme`."""
        before = self._saved().get(name)
        self._change(lambda data: self._views_of(data).update({name: saved_views.written(view)}))
        return before is not None

    def has(self, name: str) -> bool:
        """Return whether a view of that name was saved."""
        return name in self._saved()

    def drop(self, name: str) -> None:
        """Forget a view; raises NotFound, and as `keep_theme`."""

        def change(data: dict[str, Any]) -> None:
            if self._views_of(data).pop(name, None) is None:
                raise NotFound(f"no view {name!r} was saved; :views lists them")

        self._change(change)

    def _saved(self) -> dict[str, Any]:
        return self._views_of(self._read())

    def _views_of(self, data: dict[str, Any]) -> dict[str, Any]:
        views = data.setdefault("views", {})
        if not isinstance(views, dict):
            raise self._broken("its views are no object")
        return views

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise self._broken(f"{error}") from None
        if not isinstance(data, dict):
            raise self._broken("it is no object")
        return data

    def _broken(self, why: str) -> ConfigError:
        return ConfigError(
            f"{self.path} is no file of the dashboard any more, and is left alone: {why};"
            " mend it, or move it away"
        )

    def _change(self, change: Callable[[dict[str, Any]], None]) -> None:
        try:
            with self._locked():
                data = self._read()
                change(data)
                self._write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise Refused(f"{self.path} cannot be written: {error.strerror}") from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write(self, text: str) -> None:
        """Replace the file at once: nobody reads half of it, and a power cut leaves one of both."""
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
