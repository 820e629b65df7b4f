"""The model of tests with real agents: the scripted model of the demo."""

from __future__ import annotations

from draftsman_tui.cli.demo.scripted_model import ModelError as ModelError
from draftsman_tui.cli.demo.scripted_model import ScriptedModel as FakeModel
from draftsman_tui.cli.demo.scripted_model import Turn as Turn
from draftsman_tui.cli.demo.scripted_model import scripted_model as fake_model

__all__ = ["FakeModel", "ModelError", "Turn", "fake_model"]
