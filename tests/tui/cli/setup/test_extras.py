"""How to install what is missing."""

from __future__ import annotations

import pytest

from draftsman_tui.terminal import extras


def test_an_installation_without_a_folder_names_the_libraries_of_an_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extras, "source_folder", lambda: None)
    advice = extras.advice(extras.DASHBOARD)
    assert advice.startswith("the dashboard is not installed; run: pip install 'google-re2>=")
    assert "'textual<9,>=8'" in advice
    assert "draftsman" not in advice
    assert "slack" not in advice


def test_the_extra_of_another_package_is_named() -> None:
    extra = extras.Extra("chat", "chat", ("chat",), "draftsman-chat")
    assert extras.advice(extra).endswith("run: pip install 'draftsman-chat[chat]'")
