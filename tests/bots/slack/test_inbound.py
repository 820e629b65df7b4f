"""The parsers of payloads: none raises, and each finds the action of a valid payload."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from draftsman_bots.slack import ids
from draftsman_bots.slack.payloads.payloads import (
    BlockAction,
    Interaction,
    MessageChange,
    MessageEvent,
    MissingField,
    OpenedTab,
    ViewSubmission,
    parse_interaction,
    parse_message,
    readable_text,
)
from draftsman_bots.slack.people.user import Company, SlackUser
from draftsman_bots.slack.transport.payload_kind import PayloadKind
from tests.support.cases import cases

TS = "1700000000.000100"
MESSAGE: dict[str, Any] = {
    "type": "event_callback",
    "team_id": "T1",
    "event_id": "Ev1",
    "authorizations": [{"team_id": "T1", "enterprise_id": None}],
    "event": {
        "type": "message", "channel": "C1", "channel_type": "channel", "user": "U1", "ts": TS,
        "thread_ts": "1700000000.000001", "text": "&lt;b&gt; <https://x.org|x.org>", "team": "T1",
    },
}  # fmt: skip
CHANGED: dict[str, Any] = MESSAGE | {
    "event": {
        "type": "message", "subtype": "message_changed", "channel": "C1", "ts": "2.1",
        "message": {"user": "U1", "ts": TS, "text": "new", "edited": {"ts": "2.1"}},
        "previous_message": {"user": "U1", "ts": TS, "text": "old"},
    }
}  # fmt: skip
COMMAND = {
    "command": "/draftsman", "team_id": "T1", "channel_id": "C1", "user_id": "U1",
    "user_name": "anna", "text": "fix it", "trigger_id": "1.2.3", "is_enterprise_install": "false",
}  # fmt: skip
PRESS: dict[str, Any] = {
    "type": "block_actions",
    "user": {"id": "U1", "username": "anna", "team_id": "T1"},
    "team": {"id": "T1"},
    "container": {"type": "message", "message_ts": TS, "channel_id": "C1", "is_ephemeral": False},
    "message": {"ts": TS, "text": "?", "blocks": []},
    "actions": [{"action_id": "draftsman_answer:1", "value": "q:1:1:1", "action_ts": "3.1"}],
    "response_url": "https://hooks.slack.com/x",
    "trigger_id": "1.2.3",
}
SUBMISSION: dict[str, Any] = {
    "type": "view_submission",
    "user": {"id": "U1", "name": "anna", "team_id": "T1"},
    "team": None,
    "enterprise": {"id": "E1"},
    "view": {
        "id": "V1", "type": "modal", "callback_id": "c", "private_metadata": "q:1:1",
        "state": {"values": {"text": {"text": {"value": None}}, "mode": {"m": {
            "selected_option": {"value": "fix"}}}}},
    },
}  # fmt: skip
SHORTCUT: dict[str, Any] = {
    "type": "message_action", "callback_id": ids.FROM_MESSAGE, "user": {"id": "U1"},
    "team": {"id": "T1"}, "channel": {"id": "C1"}, "message": {"ts": TS, "text": "&amp;"},
}  # fmt: skip
LOOKUP = {"type": "block_suggestion", "user": {"id": "U1"}, "block_id": "q:1:1", "value": "ch"}
HOME = {"event": {"type": "app_home_opened", "user": "U1", "tab": "home"}}


def _reader(kind: PayloadKind) -> Callable[[Any], Interaction | None]:
    """Return a parser of an interaction; None stands for a missing field."""

    def read(body: Any) -> Interaction | None:
        try:
            return parse_interaction(kind, body)
        except MissingField:
            return None

    return read


def _message(body: Any) -> MessageEvent | None:
    return parse_message(body, "UBOT") if isinstance(body, dict) else None


def _opened(body: Any) -> OpenedTab | None:
    tab = OpenedTab.model_validate(body if isinstance(body, dict) else {})
    return tab if tab.user_id else None


READERS: dict[str, Callable[[Any], Any]] = {
    "message": _message,
    "command": _reader(PayloadKind.COMMAND),
    "press": _reader(PayloadKind.ACTION),
    "submission": _reader(PayloadKind.VIEW),
    "shortcut": _reader(PayloadKind.SHORTCUT),
    "lookup": _reader(PayloadKind.OPTIONS),
    "opener": _opened,
}
GOOD: list[dict[str, Any]] = [
    MESSAGE, CHANGED, COMMAND, PRESS, SUBMISSION, SHORTCUT, LOOKUP, HOME,
]  # fmt: skip


def test_message_is_parsed_as_its_author_sees_it() -> None:
    parsed = _message(MESSAGE)
    assert parsed is not None
    assert (parsed.text, parsed.change, parsed.user.id) == (
        "<b> https://x.org",
        MessageChange.POSTED,
        "U1",
    )
    assert parsed.key == f"slack:msg:T1:C1:{TS}"


def test_a_change_has_the_key_of_its_message() -> None:
    parsed = _message(CHANGED)
    assert parsed is not None
    assert (parsed.change, parsed.text, parsed.key) == (
        MessageChange.EDITED, "new", f"slack:msg:T1:C1:{TS}",
    )  # fmt: skip


@cases(
    ("new", "old"),
    [
        ({"edited": {"ts": "2.1"}, "attachments": [{}]}, {"edited": {"ts": "2.1"}}),
        ({"text": "new"}, {"text": "old"}),
        ({"text": "new", "edited": {"ts": "2.1"}, "bot_id": "B1"}, {"text": "old"}),
    ],
)
def test_change_without_a_human_edit_is_ignored(new: dict[str, Any], old: dict[str, Any]) -> None:
    text = {"user": "U1", "ts": TS, "text": "same"}
    event = CHANGED["event"] | {"message": text | new, "previous_message": text | old}
    assert _message(CHANGED | {"event": event}) is None


@cases(
    ("raw", "read"),
    [
        ("&lt;!everyone&gt;", "<!everyone>"),
        ("&amp;lt;", "&lt;"),
        ("<@U1> and <!here>", "<@U1> and <!here>"),
        ("<@U1|anna> in <#C1|general>", "@anna in #general"),
        ("<https://x.org/?a=1&amp;b=2>", "https://x.org/?a=1&b=2"),
        ("<https://evil.org|a bank>", "a bank (https://evil.org)"),
        ("<mailto:a@x.org|a@x.org>", "a@x.org"),
    ],
)
def test_incoming_text_is_unescaped_once(raw: str, read: str) -> None:
    assert readable_text(raw) == read


def test_organization_replaces_a_missing_workspace() -> None:
    parsed = ViewSubmission.model_validate(SUBMISSION)
    assert (parsed.workspace, parsed.key, parsed.values) == (
        "E1", "slack:view:V1", {"text": "", "mode": "fix"},
    )  # fmt: skip
    body = MESSAGE | {"team_id": None, "enterprise_id": "E1", "authorizations": []}
    event = _message(body)
    assert event is not None
    assert event.key == f"slack:msg:E1:C1:{TS}"
    assert not event.user.is_stranger(Company())


@cases(
    ("team", "home", "stranger"),
    [
        ("T1", "T1", False),
        ("T2", "T1", True),
        ("E2", "T1", True),
        ("", "T1", False),
        ("T2", "E1", False),
        ("E2", "E1", True),
    ],
)
def test_external_users_are_recognized(team: str, home: str, stranger: bool) -> None:
    assert SlackUser("U1", team=team, app_team=home).is_stranger(Company()) is stranger
    assert SlackUser("U1", team=team).is_stranger(Company(home)) is stranger


@cases("reader", READERS)
@cases(
    "body",
    [
        {"event": None}, {"event": []}, {"event": {}}, {"actions": []}, {"actions": [None]},
        {"user": None, "view": {}}, {"view": {"id": 1}}, {"view": None}, {}, [], None, "x", 1,
        MESSAGE | {"event": {"type": "message", "subtype": "message_changed", "message": None}},
        MESSAGE | {"event": {"type": "message", "subtype": "message_deleted"}},
    ],
)  # fmt: skip
def test_malformed_payload_parses_to_none(reader: str, body: Any) -> None:
    assert READERS[reader](body) is None


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("\ud800\x00"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    result = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        result.append((*path, key))
        if isinstance(inner, dict | list):
            result += _places(inner, (*path, key))
    return result


@st.composite
def spoilt(draw: st.DrawFn) -> Any:
    """Return a valid payload with some parts replaced."""
    body = copy.deepcopy(draw(st.sampled_from(GOOD)))
    for path in draw(st.lists(st.sampled_from(_places(body)), max_size=3)):
        inner: Any = body
        try:
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = draw(JUNK)
        except (KeyError, TypeError, IndexError):
            continue
    return body


@cases(
    ("changes", "value", "ts", "workspace"),
    [
        ({}, "q:1:1:1", TS, "T1"),
        ({"container": None}, "q:1:1:1", TS, "T1"),
        ({"team": None, "team_id": "T2", "message": 7}, "q:1:1:1", TS, "T2"),
        ({"team": "T3", "response_url": {}, "trigger_id": []}, "q:1:1:1", TS, "T3"),
        ({"team": [], "enterprise": {"id": "E1"}}, "q:1:1:1", TS, "E1"),
        ({"actions": [{"action_id": "a", "value": 1}], "message": []}, "", TS, "T1"),
        ({"actions": [{"action_id": "a", "selected_user": "U2"}]}, "U2", TS, "T1"),
        ({"container": {"type": "view", "view_id": "V1"}, "message": None}, "q:1:1:1", "", "T1"),
    ],
)
def test_fields_of_another_type_do_not_drop_a_click(
    changes: dict[str, Any], value: str, ts: str, workspace: str
) -> None:
    click = BlockAction.model_validate(PRESS | changes)
    assert (click.value, click.ts, click.workspace) == (value, ts, workspace)
    assert click.user.id == "U1"


@given(st.one_of(spoilt(), JUNK))
def test_no_payload_raises(body: Any) -> None:
    for read in READERS.values():
        read(body)


@given(st.text(), st.text(), st.text())
def test_keys_fit_and_differ(first: str, second: str, third: str) -> None:
    key = ids.message_key(first, second, third)
    assert len(key) <= ids.LONGEST
    assert key.startswith("slack:msg:")
    assert ids.trigger_key(first) == ids.trigger_key(first)


@given(st.text() | JUNK)
def test_button_value_parses_only_if_valid(value: Any) -> None:
    named = ids.parse_answer(value)
    if named is not None:
        assert ids.answer_value(named.job, named.question, named.choice) == value
    job = ids.parse_job(value)
    assert job is None or ids.job_value(job) == value
