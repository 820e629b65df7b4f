"""The changes that are not released yet fit into the changelog."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.changelog import CHANGELOG, changes, released
from tests.docs.links import broken_links
from tests.support.cases import cases

BEFORE = """# Changelog

## 0.2.0 (unreleased)

### Slack

- A mention waits.

### Web

## 0.1.0

The first release.

### Jobs

- A job runs.

### Slack

- A job has
  a thread.
"""
AFTER = """# Changelog

## 0.2.0

### Slack

- A mention waits.
- A button has
  a color.

### Web

- A page has a link.

### Jobs

- A job sleeps.

## 0.1.0
"""
BUTTON = "### Slack\n\n- A button has\n  a color.\n"
WEB = "### Web\n\n- A page has a link.\n"
JOB = "### Jobs\n\n- A job sleeps.\n"


def _changes(*texts: str) -> dict[Path, str]:
    return {Path(f"changes/{number}.md"): text for number, text in enumerate(texts)}


def test_the_changes_can_be_released() -> None:
    text = released(CHANGELOG.read_text("utf-8"), changes())
    assert [line for line in text.splitlines() if len(line) > 120] == []
    assert broken_links(CHANGELOG, text) == []


def test_changes_are_added_to_their_themes_of_the_newest_version() -> None:
    older = BEFORE.partition("## 0.1.0\n")[2]
    assert released(BEFORE, _changes(BUTTON, JOB, WEB)) == AFTER + older
    assert released(BEFORE, {}) == BEFORE.replace(" (unreleased)", "").replace("### Web\n\n", "")


@cases(
    ("text", "problem"),
    [
        ("- A job sleeps.\n", "0.md must begin with a theme, such as '### Slack'"),
        ("", "0.md must begin with a theme, such as '### Slack'"),
        ("### Slak\n\n- A mention.\n", "0.md: no theme 'Slak'; use Slack, Web, Jobs"),
        ("### Slack\n\nA mention.\n", "0.md: begin with '- ', and indent by two spaces"),
        ("### Slack\n\n- A mention\nwaits.\n", "0.md: begin with '- ', and indent by two spaces"),
        ("### Slack\n", "0.md: begin with '- ', and indent by two spaces"),
    ],
)
def test_a_change_that_does_not_fit_is_named(text: str, problem: str) -> None:
    with pytest.raises(AssertionError) as error:
        released(BEFORE, _changes(text))
    assert problem in str(error.value)


def test_a_change_after_a_release_needs_the_next_version() -> None:
    after = released(BEFORE, {})
    assert released(after, {}) == after
    with pytest.raises(AssertionError, match=r"0\.2\.0 is released"):
        released(after, _changes(JOB))
