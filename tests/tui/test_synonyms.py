"""Other words for commands belong to commands that exist."""

from __future__ import annotations

import pytest

from draftsman.errors import UsageError
from draftsman_tui.cli import command_index
from draftsman_tui.common.synonyms import SYNONYMS, near_names, synonyms
from draftsman_tui.dashboard.command_table import COMMANDS


def test_each_has_a_command_which_is_not_called_so_itself() -> None:
    names = {*COMMANDS.names, *command_index.read()}
    assert SYNONYMS.keys() <= names
    assert [name for name in SYNONYMS if name in synonyms(name)] == []


def test_another_word_is_suggested_before_a_similar_name() -> None:
    assert near_names("STOP", COMMANDS.names)[:2] == ["cancel", "cancel-force"]
    assert near_names("jbos", COMMANDS.names)[0] == "jobs"
    assert near_names("zzz", COMMANDS.names) == []
    with pytest.raises(UsageError, match="unknown command: kill; did you mean cancel or cancel-f"):
        COMMANDS.parse("kill")
