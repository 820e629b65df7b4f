"""Statements of evidence, in the format of in-toto, version 1. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from draftsman.errors import UsageError

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "urn:draftsman:evidence:v1"
PATCH_SUBJECT: Final = "changes.patch"


def statement_of(predicate: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statement about the commit and the patch of the predicate."""
    subjects = [
        {"name": predicate["branch"], "digest": {"gitCommit": predicate["head"]}},
        {"name": PATCH_SUBJECT, "digest": {"sha256": predicate["patch_sha256"]}},
    ]
    return {
        "_type": STATEMENT,
        "subject": subjects,
        "predicateType": PREDICATE,
        "predicate": dict(predicate),
    }


def predicate_of(statement: Mapping[str, Any]) -> dict[str, Any]:
    """Return the predicate of a statement whose subjects are those of its predicate.

    Raises UsageError for another statement.
    """
    predicate = statement.get("predicate")
    kinds = (statement.get("_type"), statement.get("predicateType"))
    if kinds != (STATEMENT, PREDICATE) or not isinstance(predicate, dict):
        raise UsageError(f"a statement of {str(kinds[1])[:80]!r}, not of {PREDICATE}")
    try:
        expected = statement_of(predicate)["subject"]
    except KeyError as error:
        raise UsageError(f"the statement has no {error.args[0]}") from None
    if statement.get("subject") != expected:
        raise UsageError("the subjects of the statement differ from its predicate")
    return predicate


def statement_lines(predicate: Mapping[str, Any]) -> Iterator[str]:
    """Yield the statement as lines of text: commits, commands, tests and decisions."""
    agent = predicate.get("agent") or {}
    yield f"{predicate['job']} of {predicate.get('repository')}: {predicate['branch']}"
    yield f"base      {predicate['base']}"
    yield f"head      {predicate['head']}{' (draft)' if predicate.get('draft') else ''}"
    yield f"patch     sha256 {predicate['patch_sha256']}"
    models = ", ".join(agent.get("models") or ())
    version = " ".join(str(agent.get(name)) for name in ("name", "version") if agent.get(name))
    yield f"agent     {version}{f' with {models}' if models else ''}"
    for item in predicate.get("commands", ()):
        state = "passed" if item.get("exit_code") == 0 else f"failed ({item.get('exit_code')})"
        checks = " with the check files of the base" if item.get("check_files") == "base" else ""
        yield f"command   {item.get('name')} {state}{checks}: {item.get('command')}"
    for item in (predicate.get("tests") or {}).get("runs", ()):
        where = {
            "work": "on the work",
            "base": "on the base",
            "old": "in its old form",
            "own": "with the check files of the work",
        }
        yield f"test      {item.get('file')} {item.get('outcome')} {where.get(item.get('on'))}"
    for item in (predicate.get("tests") or {}).get("findings", ()):
        yield f"finding   {str(item.get('kind')).replace('_', ' ')}: {item.get('file')}"
    if coverage := (predicate.get("tests") or {}).get("coverage"):
        covered = coverage.get("covered")
        measured = coverage.get("measured")
        yield f"coverage  {covered} of {measured} changed lines"
    for path in predicate.get("check_files", ()):
        yield f"changed   check file {path}"
    policy = predicate.get("policy") or {}
    if policy:
        yield f"policy    sha256 {policy.get('sha256')}"
    for item in policy.get("findings", ()):
        location = ":".join(str(item[name]) for name in ("path", "line") if item.get(name))
        detail = f" {item['detail']}" if item.get("detail") else ""
        question = f", see {item['question']}" if item.get("question") else ""
        yield f"rule      {item.get('rule')}: {location or 'the work'}{detail}{question}"
    for item in predicate.get("decisions", ()):
        by = ", ".join(item.get("by") or ()) or item.get("rule") or item.get("via")
        digest = f", patch sha256 {item['patch_sha256'][:16]}…" if item.get("patch_sha256") else ""
        value = f" {item['value']}" if item.get("value") else ""
        yield f"decision  {item.get('question')} {item.get('outcome')}{value} by {by}{digest}"


# DSSE envelopes: a payload and signatures of it, with the type of the payload. Pure.
#
# The format is that of https://github.com/secure-systems-lab/dsse, version 1.


PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"


@dataclass(frozen=True, slots=True)
class Envelope:
    """A signed payload: `signatures` are (key id, signature)."""

    payload: bytes
    signatures: tuple[tuple[str, bytes], ...]

    def encode(self) -> bytes:
        """Return the envelope as JSON."""
        signatures = [
            {"keyid": id, "sig": base64.b64encode(signature).decode()}
            for id, signature in self.signatures
        ]
        fields = {
            "payloadType": PAYLOAD_TYPE,
            "payload": base64.b64encode(self.payload).decode(),
            "signatures": signatures,
        }
        return json.dumps(fields, indent=1).encode() + b"\n"


def signed_bytes(payload: bytes) -> bytes:
    """Return the bytes to sign: the payload and its type, each with its length."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def parse_envelope(data: bytes) -> Envelope:
    """Return the envelope of a file; raises UsageError."""
    try:
        fields = json.loads(data)
        kind = fields["payloadType"]
        payload = _decode(fields["payload"])
        signatures = tuple(
            (str(item.get("keyid", "")), _decode(item["sig"])) for item in fields["signatures"]
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError("not a DSSE envelope of evidence") from None
    if kind != PAYLOAD_TYPE:
        raise UsageError(f"an envelope of {str(kind)[:80]!r}, not of {PAYLOAD_TYPE}")
    return Envelope(payload, signatures)


def parse_payload(envelope: Envelope) -> dict[str, Any]:
    """Return the statement of an envelope; raises UsageError."""
    try:
        statement = json.loads(envelope.payload)
    except (ValueError, RecursionError):
        statement = None
    if not isinstance(statement, dict):
        raise UsageError("the payload of the envelope is not a JSON object")
    return statement


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
