"""Activity of agents: pieces are joined, batches are limited, secrets are masked, rows are text."""

from __future__ import annotations

from draftsman.agent_runs.activity.activity import (
    BATCH_CHARACTERS,
    BATCH_ROWS,
    HOLD,
    TEXT,
    Activity,
    ActivityBuffer,
    ActivityKind,
    ActivityState,
    activity_text,
    of_usage,
)
from draftsman.log import redact
from tests.support.cases import cases

K = ActivityKind
S = ActivityState


def said(text: str, *, more: bool = False, kind: ActivityKind = K.MESSAGE) -> Activity:
    return Activity(kind, text, continues=more)


def buffer_of(*items: Activity) -> ActivityBuffer:
    buffer = ActivityBuffer(redact)
    for item in items:
        buffer.add(item)
    return buffer


def test_pieces_of_a_message_are_one_row_and_other_messages_are_rows_of_their_own() -> None:
    pieces = said("Fix"), said("ing ", more=True), said("it\n", more=True), said("Done\n")
    assert buffer_of(*pieces, said("hm\n", kind=K.THOUGHT)).take(0) == [
        said("Fixing it\n"),
        said("Done\n"),
        said("hm\n", kind=K.THOUGHT),
    ]


def test_only_the_newest_state_of_a_call_a_file_and_the_plan_is_kept() -> None:
    plan = [Activity(K.PLAN, "", key="plan", detail={"n": n}) for n in range(2)]
    calls = [Activity(K.TOOL, "make", state, key="1") for state in (S.RUNNING, S.FAILED)]
    other = Activity(K.TOOL, "make", S.RUNNING, key="2")
    assert buffer_of(calls[0], plan[0], other, calls[1], plan[1]).take(0) == [
        calls[1],
        plan[1],
        other,
    ]


def test_a_batch_is_limited_whatever_an_agent_sends_and_counts_what_it_omits() -> None:
    chunks = buffer_of(said("x" * 1000), *(said("x" * 1000, more=True) for _ in range(999)))
    batch = chunks.take(0, final=True)
    assert sum(len(item.text) for item in batch[:-1]) == BATCH_CHARACTERS
    assert max(len(item.text) for item in batch) == TEXT
    omitted = 1_000_000 - BATCH_CHARACTERS
    assert batch[-1] == Activity(K.NOTE, f"{omitted:,} characters of activity omitted")
    calls = buffer_of(*(Activity(K.TOOL, "x", S.RUNNING, key=str(n)) for n in range(9999)))
    assert len(calls.take(0)) == BATCH_ROWS + 1
    assert chunks.take(0) == calls.take(0) == []


def test_the_last_line_waits_for_its_end_so_that_a_secret_is_masked() -> None:
    buffer = buffer_of(said("The key:\napi_key=abc"))
    assert buffer.take(10) == [said("The key:\n")]
    buffer.add(said("def\nnext", more=True))
    assert buffer.take(10 + HOLD / 2) == [said("api_key=***\n", more=True)]
    assert buffer.take(10 + HOLD) == []
    assert buffer.take(10 + 2 * HOLD) == [said("next", more=True)]
    assert not buffer


def test_secrets_are_masked_in_titles_and_plans() -> None:
    call = Activity(K.TOOL, "curl -H 'Authorization: Bearer abcdefgh1234'", S.RUNNING, key="1")
    plan = Activity(K.PLAN, "", key="plan", detail={"entries": [{"text": "use token=abc"}]})
    masked_call, masked_plan = buffer_of(call, plan).take(0)
    assert "abcdefgh" not in masked_call.text
    assert masked_plan.detail == {"entries": [{"text": "use token=***"}]}


ENTRIES = [
    {"text": "read", "state": "completed"},
    {"text": "write", "state": "running"},
    {"text": "test", "state": "pending"},
]


@cases(
    ("row", "text"),
    [
        (said("hello"), "hello"),
        (Activity(K.TOOL, "npm test", S.COMPLETED, "1", {"tool": "execute"}),
         "✓ execute: npm test"),
        (Activity(K.TOOL, "npm test", S.PENDING), "? npm test"),
        (Activity(K.TOOL, "npm test"), "· npm test"),
        (Activity(K.FILE, "a.py", S.DELETED), "[deleted] a.py"),
        (Activity(K.PLAN, "", detail={"entries": ENTRIES}), "[plan] 1 of 3 steps: write"),
        (Activity(K.PLAN, "", detail={"entries": ENTRIES[:1]}), "[plan] 1 of 1 step"),
        (of_usage({"input_tokens": 12345, "output_tokens": 0, "cost_usd": 0.125, "models": []}),
         "[usage] 12,345 tokens in, $0.12"),
        (of_usage({}), "[usage] no tokens"),
        (Activity(K.NOTE, "3 omitted"), "[note] 3 omitted"),
    ],
)  # fmt: skip
def test_a_row_is_a_line_of_text(row: Activity, text: str) -> None:
    assert activity_text(row) == text
