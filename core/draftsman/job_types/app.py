"""The app of a worker: the module with its job types, and those of installed packages."""

from __future__ import annotations

import sys
import tomllib
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final

from draftsman.errors import ConfigError
from draftsman.handlers.registry import BUILT_IN, Handler
from draftsman.job_types import declaration
from draftsman.job_types.declaration import JobType
from draftsman.job_types.process_runs import ProcessRuns
from draftsman.job_types.published.description import TypeDescription
from draftsman.settings import Settings
from draftsman.settings.job_types import TypeSettings

GROUP: Final = "draftsman.job_types"
"""Entry points of packages: each names a module that declares job types."""
PROJECT: Final = "pyproject.toml"
TABLE: Final = "draftsman"


@dataclass(frozen=True, slots=True)
class AppPlace:
    """Where an app comes from."""

    module: str
    folder: Path
    """The folder that is importable for it."""
    named_by: str
    """`--app`, or the file that names it."""

    def __str__(self) -> str:
        return f"{self.module} of {self.folder} ({self.named_by})"


def find_app(option: str | None, folder: Path) -> AppPlace | None:
    """Return the app of an option, else that of the folder's `pyproject.toml`; raises ConfigError.

    A worker runs the code of an app by its purpose; no other command looks here, as the current
    folder may be a clone of somebody else.
    """
    if option is not None:
        return AppPlace(option, folder, "--app")
    path = folder / PROJECT
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    try:
        table = tomllib.loads(text).get("tool", {}).get(TABLE, {})
    except (tomllib.TOMLDecodeError, AttributeError) as error:
        raise ConfigError(f"{path} is no valid TOML: {error}") from None
    module = table.get("app") if isinstance(table, dict) else None
    if module is None:
        return None
    if not isinstance(module, str):
        raise ConfigError(f"{path}: app of [tool.{TABLE}] must be a module, such as company.jobs")
    return AppPlace(module, folder, str(path))


def load_types(app: AppPlace | None) -> dict[str, JobType[Any, Any]]:
    """Import the app and the packages with job types; return the types by name and alias.

    Raises ConfigError for a module that cannot be imported, and for an app without a type.
    """
    if app is not None:
        sys.path.insert(0, str(app.folder))
        before = len(declaration.declared_types)
        is_new = app.module not in sys.modules
        _import(app.module, f"the app {app.module}", f"is it below {app.folder}, or installed?")
        if is_new and len(declaration.declared_types) == before:
            raise ConfigError(f"the app {app} declares no job type; use @job in it")
    for point in _packages():
        package = point.dist.name if point.dist else point.name
        _import(point.module, f"the package {package}", f"entry point {point.value} of {GROUP}")
    return dict(declaration.declared_types)


def import_modules(modules: Iterable[str]) -> None:
    """Import the modules of types, as another process of the worker did; raises ConfigError."""
    for module in modules:
        _import(module, module, "another process of this worker imported it")


def handlers_of(
    types: Mapping[str, JobType[Any, Any]],
    configured: Mapping[str, str],
    processes: ProcessRuns | None = None,
) -> dict[str, Handler]:
    """Return the handlers of the types; raises ConfigError for a name that another one has."""
    for name, declared in types.items():
        if name in BUILT_IN:
            raise ConfigError(f"{declared.place} declares {name}, a built-in type; rename it")
        if name in configured:
            raise ConfigError(
                f"the job type {name} is declared by {declared.place} and set in [handlers];"
                " remove one of them"
            )
    return {name: declared.handler(processes) for name, declared in types.items()}


def descriptions_of(
    types: Mapping[str, JobType[Any, Any]], app: AppPlace | None = None
) -> list[TypeDescription]:
    """Return what a worker publishes of the types, each once."""
    module = "" if app is None else app.module
    return [
        replace(declared.description, app=module)
        for name, declared in types.items()
        if name == declared.name
    ]


def with_limits(settings: Settings, types: Mapping[str, JobType[Any, Any]]) -> Settings:
    """Return the settings with the declared limits, which those of `[types.NAME]` override."""
    limits = {
        name: TypeSettings.model_validate(
            {**declared.limits, **_set_fields(settings.types.get(name))}
        )
        for name, declared in types.items()
    }
    return settings.model_copy(update={"types": {**settings.types, **limits}})


def _set_fields(settings: TypeSettings | None) -> dict[str, Any]:
    return {} if settings is None else settings.model_dump(exclude_unset=True)


def _packages() -> Iterator[EntryPoint]:
    yield from sorted(entry_points(group=GROUP), key=lambda point: point.value)


def _import(module: str, what: str, where: str) -> None:
    try:
        import_module(module)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:  # a module may raise anything on import
        reason = " ".join(str(error).split()) or type(error).__name__
        place = _place(error)
        raise ConfigError(f"cannot import {what}: {reason}{place}; {where}") from error


def _place(error: BaseException) -> str:
    """Return where a module failed, as ` (jobs.py:12)`; nothing if none of its lines ran."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    is_own = frame.filename != __file__ and not frame.filename.startswith("<frozen ")
    is_own = is_own and Path(frame.filename).parent.name != "importlib"
    return f" ({Path(frame.filename).name}:{frame.lineno})" if is_own else ""
