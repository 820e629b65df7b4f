"""The sweeps that the services declare, without a database to run them in."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Database
from draftsman.runtime import ENUMS, wire
from draftsman.settings import Settings

_SETTINGS: Final = Settings()
SWEEPS: Final = wire(
    _SETTINGS, Database("", _SETTINGS.database, enums=ENUMS), embedded=False
).sweeps.all
DUE_QUERIES: Final = [sweep.due.query for sweep in SWEEPS if sweep.due is not None]
