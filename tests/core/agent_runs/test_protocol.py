"""Lines of the agent protocol: parsing, refusals with their reasons, and encoding."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some

from draftsman.agent_runs.protocol.agent_messages import (
    ApproveMessage,
    AskMessage,
    CheckpointMessage,
    ErrorMessage,
    EventMessage,
    FromAgent,
    LogMessage,
    StepMessage,
    UsageMessage,
)
from draftsman.agent_runs.protocol.codec import MAX_REASON, TYPES, encode, parse_line
from draftsman.agent_runs.protocol.protocol import (
    AckMessage,
    AnswerBody,
    AnswerMessage,
    ParkMessage,
    Profile,
    RefusedMessage,
    StartMessage,
    ToAgent,
)
from draftsman.questions.question import OnExpire, QuestionKind
from draftsman.sandbox.processes.process import MAX_LINE, LineSplitter, MalformedLine
from draftsman.settings.profiles import CommandSettings, ProfileSettings
from tests.support.cases import cases

JSON = some.recursive(
    some.none() | some.booleans() | some.floats() | some.integers() | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
    max_leaves=8,
)
FIELDS = sorted(
    {
        field.alias or name
        for model in get_args(FromAgent)
        for name, field in model.model_fields.items()
        if name != "type"
    }
)


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def read(**fields: Any) -> Any:
    message = parse_line(line(**fields))
    assert not isinstance(message, MalformedLine), message.reason
    return message


def reason(**fields: Any) -> str:
    message = parse_line(line(**fields))
    assert isinstance(message, MalformedLine)
    return message.reason


@given(some.binary() | some.text().map(str.encode))
def test_no_bytes_make_the_parser_raise(data: bytes) -> None:
    result = parse_line(data)
    assert isinstance(result, MalformedLine)
    assert result.reason.isprintable()


@given(some.sampled_from(TYPES), some.dictionaries(some.sampled_from(FIELDS), JSON))
def test_parsing_never_raises_and_parsed_messages_can_be_encoded(
    kind: str, fields: dict[str, Any]
) -> None:
    result = parse_line(json.dumps({"type": kind, **fields}).encode())
    if isinstance(result, MalformedLine):
        assert result.reason.isprintable()
        assert len(result.reason) <= MAX_REASON
    else:
        assert parse_line(encode(result)) == result
        assert json.loads(encode(result), parse_constant=pytest.fail)["type"] == kind


@cases(
    ("data", "start"),
    [
        (b"", "invalid JSON: EOF while parsing"),
        (b"hello", "invalid JSON: expected value"),
        (b"\xff\xfe", "invalid JSON"),
        (b'{"type":"log","text":"\xff"}', "invalid JSON: invalid unicode"),
        (b'{"type":"log","text":"\\ud8g0"}', "invalid JSON: invalid escape"),
        (b'{"type":"log","text":"a"}{}', "invalid JSON: trailing characters"),
        (b"[1]", "must be an object"),
        (b"{}", "type is required; known types: ask, approve, checkpoint,"),
        (b'{"type":"start"}', "unknown type 'start'; known types: ask,"),
        (b'{"type":"no\\nsuch"}', "unknown type 'no\\nsuch'"),
        (b'{"type":{}}', "unknown type '{}'"),
        (b'{"type":"log"}', "log.text: is required"),
        (b'{"type":"log","text":1}', "log.text: must be text"),
        (b'{"type":"log","text":"x","level":"loud"}', "log.level: must be 'debug',"),
        (b'{"type":"checkpoint","data":[1e999]}', "checkpoint.data: a number is too large"),
        (b'{"type":"checkpoint","data":NaN}', "checkpoint.data: a number is too large"),
        (b'{"type":"checkpoint","data":' + b"9" * 5000 + b"}", "invalid JSON: number out of range"),
        (b'{"type":"checkpoint","data":' + b"[" * 999, "invalid JSON: recursion limit exceeded"),
        (b'{"type":"event","kind":"No Spaces"}', "event.kind: must match the pattern"),
        (b'{"type":"artifact","path":"a","name":"../b"}', "artifact.name: must match the"),
        (b'{"type":"error","class":"VALID","message":"x"}', "error.class: must be"),
        (b'{"type":"usage","input_tokens":-1}', "usage.input_tokens: must be at least 0"),
        (b'{"type":"step","key":"k","state":"doing"}', "step.state: must be 'pending'"),
        (b'{"type":"ask","key":"k","text":"t"}', "ask.id: is required"),
        (
            b" " * 9 + b"x" * (MAX_LINE + 1),
            "line of 1,048,577 bytes is too long; the limit is 1,048,576 bytes",
        ),
    ],
)
def test_an_invalid_message_is_refused_with_the_reason(data: bytes, start: str) -> None:
    result = parse_line(data)
    assert isinstance(result, MalformedLine)
    assert result.reason.startswith(start)
    assert len(result.reason) <= MAX_REASON


def test_the_longest_line_is_read() -> None:
    text = "x" * (MAX_LINE - len(line(type="log", text="")))
    assert read(type="log", text=text) == LogMessage(text=text)


def test_a_refused_message_keeps_its_id_for_the_reply() -> None:
    assert parse_line(b'{"type":"log","id":"7"}') == MalformedLine("log.text: is required", "7")
    for invalid in (7, None, "", "x" * 201, ["7"]):
        result = parse_line(line(type="log", id=invalid))
        assert isinstance(result, MalformedLine)
        assert result.id is None


@cases(
    ("written", "text"),
    [
        (rb"\ud800", "\ufffd"),
        (rb"cut \uD83D", "cut \ufffd"),
        (rb"\udc00\ud800x", "\ufffd\ufffdx"),
        (rb"\ud83d\ude00", "\U0001f600"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\\ud800", r"\ud800"),
        (rb"\\\ud800", "\\\ufffd"),
    ],
)
def test_half_of_a_surrogate_pair_is_replaced(written: bytes, text: str) -> None:
    message = parse_line(b'{"type":"log","id":"7","text":"' + written + b'"}')
    assert message == LogMessage(id="7", text=text)


@given(some.text(some.characters()), some.sampled_from(FIELDS))
def test_every_text_of_a_program_is_a_message(text: str, name: str) -> None:
    data = line(type="event", id="7", kind="k", payload={name: text, text: [text]})
    message = parse_line(data)
    assert isinstance(message, EventMessage)
    encode(message)


@cases(
    "data",
    [
        b'{"type":"log","id":"7","text":"\xff"}',
        b'{"type":"checkpoint","id":"7","data":' + b"[" * 999,
        b'{"type":"checkpoint","id":"7","data":"' + b"x" * MAX_LINE + b'"}',
        b'{"type":"log","id":"7","text":"without an end',
    ],
)
def test_an_id_is_found_in_a_line_that_is_no_message(data: bytes) -> None:
    splitter = LineSplitter()
    pieces = [data[at : at + 1000] for at in range(0, len(data), 1000)]
    lines = [item for piece in (*pieces, b"\n") for item in splitter.feed(piece)]
    results = [parse_line(data), *map(parse_line, lines)]
    assert [(type(result), result.id) for result in results] == [(MalformedLine, "7")] * 2


def test_fields_of_a_newer_agent_are_ignored() -> None:
    assert read(type="log", text="x", colour="red") == LogMessage(text="x")
    message = read(type="ask", id="1", key="k", text="t", choices=[{"value": "a", "icon": "b"}])
    assert message.choices[0].value == "a"


def test_a_choice_may_be_a_plain_string() -> None:
    choices = ["yes", {"value": "no", "label": "No!", "description": "stop"}]
    item = read(type="ask", id="1", key="go", text="Go on?", choices=choices).question()
    assert [choice.model_dump() for choice in item.choices] == [
        {"value": "yes", "label": "yes", "description": None},
        {"value": "no", "label": "No!", "description": "stop"},
    ]
    assert not item.freeform
    assert item.on_expire is OnExpire.EXPIRE


def test_a_question_without_choices_takes_free_text() -> None:
    assert read(type="ask", id="1", key="why", text="Why?").question().freeform


def test_a_default_applies_on_expiry() -> None:
    message = read(type="ask", id="1", key="k", text="t", choices=["a", "b"], default="a")
    assert message.question().on_expire is OnExpire.DEFAULT
    assert message.question().default == "a"


@cases(("given_", "seconds", "never"), [(None, None, False), (0, None, True),
                                                          (60, 60.0, False)])  # fmt: skip
def test_expiry_is_seconds_never_or_as_configured(
    given_: float | None, seconds: float | None, never: bool
) -> None:
    for kind in ("ask", "approve"):
        item = read(type=kind, id="1", key="k", text="t", expires_in=given_).question()
        assert (item.expires_in, item.never_expires) == (seconds, never)


@cases(
    ("fields", "start"),
    [
        ({"choices": ["a", "A"]}, "ask: two choices have the same value; make them differ"),
        ({"choices": [""]}, "ask.choices.0.value: must not be empty"),
        ({"choices": ["a"], "default": "b"}, "ask: the default 'b' is not among the choices"),
        ({"freeform": False}, "ask: a question needs choices, or freeform=True, or both"),
        ({"choices": ["a"], "on_expire": "default"}, "ask: a default requires on_expire"),
        ({"text": "x" * 3001}, "ask.text: must have at most 3000 characters"),
        ({"expires_in": -1}, "ask.expires_in: must be at least 0"),
    ],
)
def test_an_inconsistent_question_of_an_agent_is_refused(
    fields: dict[str, Any], start: str
) -> None:
    assert reason(**{"type": "ask", "id": "1", "key": "k", "text": "t", **fields}).startswith(start)


def test_an_approval_is_bound_to_its_action() -> None:
    gates = [
        read(type="approve", id="1", key="k", text="Deploy?", action=action).question()
        for action in ({"to": "a"}, {"to": "a"}, {"to": "b"}, None)
    ]
    assert {gate.kind for gate in gates} == {QuestionKind.APPROVAL}
    assert gates[0].digest == gates[1].digest
    assert len({gate.digest for gate in gates}) == 3


def test_a_message_without_an_id_needs_no_reply() -> None:
    assert read(type="checkpoint", data={"n": 1}) == CheckpointMessage(data={"n": 1})
    assert read(type="checkpoint", data=None, id="5").id == "5"
    assert read(type="event", kind="tests_ran").payload == {}
    assert read(type="step", key="pr", state="pending", invocation_id="i") == StepMessage(
        key="pr", state="pending", invocation_id="i"
    )
    assert read(type="usage", output_tokens=5, cost_usd=0.5) == UsageMessage(
        output_tokens=5, cost_usd=0.5
    )


def test_an_error_has_a_class() -> None:
    error = ErrorMessage(error_class="PERMANENT", code="x", message="no")
    assert read(**{"type": "error", "class": "PERMANENT", "code": "x", "message": "no"}) == error
    assert b'"class":"PERMANENT"' in encode(error)


def test_messages_of_the_worker_are_single_lines() -> None:
    start = StartMessage(
        job="D-7",
        run=2,
        repo="/src",
        workspace="/work",
        branch="draftsman/D-7",
        base_sha="a" * 40,
        checkpoint={"text": "two\nlines"},
        answers={"go": AnswerBody(outcome="answered", value="yes", by=("ana",))},
        deadline=datetime(2024, 5, 17, tzinfo=UTC),
        profile=Profile.of(ProfileSettings()),
    )
    answer = AnswerMessage(id="1", key="k", outcome="denied")
    messages: list[ToAgent] = [
        start,
        answer,
        AckMessage(id="1"),
        RefusedMessage(reason="no"),
        ParkMessage(),
    ]
    for message in messages:
        data = encode(message)
        assert data.endswith(b"\n")
        assert data.count(b"\n") == 1
        assert json.loads(data)["type"] == message.type
    line = json.loads(encode(start))
    assert line["v"] == 1
    assert line["checkpoint"] == {"text": "two\nlines"}
    assert line["answers"]["go"]["by"] == ["ana"]
    assert line["profile"]["validation_commands"][0]["command"][0] == sys.executable
    assert line["profile"]["fix_commands"][2]["level"] == "all"


def test_an_event_is_parsed_unchanged() -> None:
    payload = {"a": [1, 2.5, None, True, {"b": "ü"}]}
    assert read(type="event", kind="a.b", payload=payload) == EventMessage(
        kind="a.b", payload=payload
    )
    gate = ApproveMessage(id="1", key="k", text="t")
    assert parse_line(encode(gate)) == gate
    ask = AskMessage(id="1", key="k", text="t")
    assert parse_line(encode(ask)) == ask


def test_agents_get_commands_without_the_placeholder_of_a_report() -> None:
    words = ("sh", "-c", 'run > "$0" --x={report}', "{report}")
    settings = ProfileSettings(validation_commands=(CommandSettings(name="t", command=words),))
    [command] = Profile.of(settings).validation_commands
    assert command.command == ("sh", "-c", 'run > "$0" --x=/dev/null', "/dev/null")
