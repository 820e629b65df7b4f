"""The manifests, the code and docs/slack.md agree."""

from __future__ import annotations

import re
from pathlib import Path

import draftsman_bots.slack
from draftsman.resources import folder
from draftsman_bots.slack import ids, scopes
from draftsman_bots.slack.settings import SlackSettings
from draftsman_bots.slack.transport.http_app import EVENTS_PATH
from tests.docs.pages import DOCS
from tests.support.cases import cases

BOTS = Path(draftsman_bots.slack.__file__).parent
PAGE = (DOCS / "slack.md").read_text(encoding="utf-8")
WANTED = {"minimal": scopes.MINIMAL, "full": scopes.FULL}


def _text(name: str) -> str:
    return folder("config").joinpath(f"slack_manifest.{name}.yaml").read_text("utf-8")


def _list(text: str, key: str) -> list[str]:
    """Return the items of a list of the manifest."""
    result = re.search(rf"^( *){key}:\n((?:\1  - .*\n)+)", text, re.MULTILINE)
    assert result, key
    return re.findall(r"- (.*)", result[2])


def _values(text: str, key: str) -> list[str]:
    return re.findall(rf"^ *(?:- )?{key}: (.*)$", text, re.MULTILINE)


@cases("name", WANTED)
def test_manifest_requests_the_scopes_and_events_in_use(name: str) -> None:
    text = _text(name)
    assert _list(text, "bot") == list(WANTED[name])
    events = _list(text, "bot_events")
    assert events == [
        event for event, scope in scopes.EVENTS.items() if scope in (None, *WANTED[name])
    ]
    assert set(_values(text, "callback_id")) == {ids.NEW_JOB, ids.FROM_MESSAGE}
    default = SlackSettings.model_fields["command"].default
    assert _values(text, "command") == [default]
    assert _values(text, "socket_mode_enabled") == ["true"]
    assert set(re.findall(r"https://bot\.example\.org(\S*)", text)) == {EVENTS_PATH}


def test_minimal_manifest_reads_no_channel() -> None:
    assert [item for item in scopes.MINIMAL if item.endswith(":history")] == ["im:history"]


def test_every_method_that_is_called_is_allowed() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in BOTS.rglob("*.py"))
    code = re.sub(r"^METHODS.*?^}", "", code, flags=re.DOTALL | re.MULTILINE)
    families = "|".join(sorted({method.partition(".")[0] for method in scopes.METHODS}))
    called = set(re.findall(rf'"((?:{families})\.[a-zA-Z.]+)"', code))
    snake = {re.sub(r"[A-Z]", lambda c: f"_{c[0].lower()}", m).replace(".", "_"): m
             for m in scopes.METHODS}  # fmt: skip
    names = re.findall(rf"(?:web|client)\.((?:{families})_[a-z_]+)\(", code)
    assert [name for name in names if name not in snake] == []
    called |= {snake[name] for name in names}
    assert called - scopes.METHODS.keys() == set()
    needed = {scope for scope in scopes.METHODS.values() if scope}
    assert needed <= set(scopes.FULL)


def test_documentation_explains_each_scope() -> None:
    assert [scope for scope in scopes.FULL if f"`{scope}`" not in PAGE] == []
    listed = set(re.findall(r"`([a-z_]+:[a-z]+)`", PAGE)) - {"connections:write", "host:port"}
    assert listed <= set(scopes.FULL)
    assert EVENTS_PATH in PAGE
    for name in WANTED:
        assert f"slack_manifest.{name}.yaml" in PAGE
    for key in SlackSettings.model_fields:
        assert f"`{key}`" in PAGE, key
