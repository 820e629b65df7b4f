"""DSSE envelopes and in-toto statements."""

from __future__ import annotations

import json
from typing import Any

import pytest

from draftsman.agent_runs.evidence.findings import (
    EvidenceFinding,
    FindingKind,
    TestEvidence,
    TestRun,
    judge,
)
from draftsman.agent_runs.evidence.statement import (
    Envelope,
    parse_envelope,
    parse_payload,
    predicate_of,
    signed_bytes,
    statement_of,
)
from draftsman.errors import UsageError

PREDICATE = {"job": "D-1", "branch": "draftsman/D-1", "head": "a" * 40, "patch_sha256": "b" * 64}


def test_the_signed_bytes_are_those_of_the_specification() -> None:
    signed = signed_bytes(b'{"a": 1}')
    assert signed == b'DSSEv1 28 application/vnd.in-toto+json 8 {"a": 1}'


def test_an_envelope_is_read_back_and_others_are_refused() -> None:
    envelope = Envelope(b'{"a": 1}', (("key", b"\x00\xff"),))
    assert parse_envelope(envelope.encode()) == envelope
    assert parse_payload(envelope) == {"a": 1}
    fields = json.loads(envelope.encode())
    others: list[Any] = [
        b"",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        fields | {"payloadType": "text/plain"},
    ]
    others += [fields | {"payload": 3}, fields | {"signatures": [{"sig": None}]}]
    others += [fields | {"signatures": [[]]}, fields | {"payload": "é"}]
    for other in others:
        with pytest.raises(UsageError):
            parse_envelope(other if isinstance(other, bytes) else json.dumps(other).encode())
    with pytest.raises(UsageError, match="not a JSON object"):
        parse_payload(Envelope(b"3", ()))


def test_the_subjects_of_a_statement_are_those_of_its_predicate() -> None:
    statement = statement_of(PREDICATE)
    assert predicate_of(statement) == PREDICATE
    assert statement["subject"][0]["digest"] == {"gitCommit": "a" * 40}
    for changed, reason in (
        ({"predicate": PREDICATE | {"head": "c" * 40}}, "differ"),
        ({"subject": statement["subject"][:1]}, "differ"),
        ({"predicate": {"job": "D-1"}}, "has no branch"),
        ({"predicateType": "https://slsa.dev/provenance/v1"}, "not of urn:draftsman"),
        ({"_type": "https://in-toto.io/Statement/v0.1"}, "not of urn:draftsman"),
    ):
        with pytest.raises(UsageError, match=reason):
            predicate_of(statement | changed)


def test_runs_are_judged_by_where_they_ran() -> None:
    def ran(file: str, on: str, *codes: int | None) -> TestRun:
        return TestRun(file, on, codes, 1.0, "now")

    runs = [
        *(ran("good", "work", 0), ran("good", "base", 1), ran("good", "old", 0)),
        *(ran("same", "work", 0), ran("same", "base", 0, 0, 0)),
        *(ran("red", "work", 1, 2, None), ran("red", "base", 1)),
        *(ran("luck", "work", 1, 0), ran("luck", "base", 0, 1)),
        ran("old", "old", 1, 1, 1),
    ]
    evidence = judge(runs, ["gone"], ["x.bin"], ["late"])
    kinds = FindingKind
    assert list(evidence.findings) == [
        EvidenceFinding(kinds.PASSES_ON_BASE, "same"),
        EvidenceFinding(kinds.FAILS_ON_WORK, "red"),
        EvidenceFinding(kinds.FLAKY, "luck"),
        EvidenceFinding(kinds.OLD_FORM_FAILS, "old"),
        EvidenceFinding(kinds.REMOVED, "gone"),
        EvidenceFinding(kinds.BINARY, "x.bin"),
        EvidenceFinding(kinds.NOT_RUN, "late"),
    ]
    assert evidence.proved == ["good"]
    assert [item.file for item in evidence.refused] == ["same", "red"]
    assert [files for _, files in evidence.reasons()] == [
        ["luck"],
        ["gone"],
        ["old"],
        ["x.bin"],
        ["late"],
    ]
    assert TestEvidence.of(json.loads(json.dumps(evidence.as_json()))) == evidence
