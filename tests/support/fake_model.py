"""The model of tests with real agents: the scripted model of the demo."""

from __future__ import annotations

from typing import Any, Final

from draftsman_tui.cli.demo.scripted_model import ModelError as ModelError
from draftsman_tui.cli.demo.scripted_model import ScriptedModel as FakeModel
from draftsman_tui.cli.demo.scripted_model import Turn as Turn
from draftsman_tui.cli.demo.scripted_model import scripted_model as fake_model

__all__ = ["FREE", "FREE_KEYS", "FakeModel", "ModelError", "Turn", "fake_model"]
FREE: Final = {"input": 0, "output": 0, "date": "2026-11-01", "source": "test"}
"""The price of its calls."""
FREE_KEYS: Final[dict[str, Any]] = {f'prices."*".{name}': value for name, value in FREE.items()}
"""The same, as keys of a configuration."""
