"""Decoding, checking and storing of outputs as results or artifacts."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any, Final

from draftsman.errors import CommandHint, Failure, UsageError
from draftsman.handlers.worker_run import WorkerRun
from draftsman.text import clean_within_limit

# Strict parser of JSON.


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; raises ValueError, for NaN and infinities as well."""
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


INLINE: Final = 256 * 1024
"""Maximum bytes of JSON of an output in a result; longer output becomes an artifact."""
INVALID: Final = "invalid-output"
"""Artifact with a rejected output."""
_CHARSET: Final = re.compile(
    r"(utf-?8|us-ascii|ascii|iso-8859-\d{1,2}|windows-125\d|utf-16(le|be)?|shift_jis|euc-(jp|kr)"
    r"|gb(2312|k|18030)|big5|koi8-[ru])\Z",
    re.IGNORECASE,
)
_JSON: Final = re.compile(r"application/(json|[\w.+-]+\+json)\Z", re.IGNORECASE)
_TEXT: Final = re.compile(
    r"text/|application/(javascript|xml|[\w.+-]+\+xml|x-www-form-urlencoded|x-ndjson)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class DecodedOutput:
    """Decoded bytes; `encoding` is `json`, `text` or `base64`."""

    value: Any
    encoding: str
    replaced: bool = False
    """Whether bytes that are not valid text were replaced."""


def decode_output(data: bytes, content_type: str = "") -> DecodedOutput:
    """Decode bytes by their content type; bytes that are not text become base64."""
    kind, charset = _parse_content_type(content_type)
    if not data:
        return DecodedOutput("", "text")
    if _JSON.match(kind):
        try:
            return DecodedOutput(clean_within_limit(parse_json(data), INLINE, "the output"), "json")
        except (ValueError, UsageError):
            pass  # decode it as text
    declared = bool(_JSON.match(kind) or _TEXT.match(kind))
    try:
        return DecodedOutput(data.decode(charset), "text")
    except UnicodeError:
        if declared or kind.startswith("text/"):
            return DecodedOutput(data.decode(charset, "replace"), "text", replaced=True)
    return DecodedOutput(base64.b64encode(data).decode("ascii"), "base64")


async def to_result(
    run: WorkerRun, data: bytes, output: DecodedOutput, name: str
) -> dict[str, Any]:
    """Return the result fields for an output, which a long output has as an artifact."""
    result: dict[str, Any] = {"encoding": output.encoding, "bytes": len(data)}
    if output.replaced:
        result["replaced"] = True
    try:
        return result | {"body": clean_within_limit(output.value, INLINE, "the output")}
    except UsageError:
        await run.artifact(name, data)
        return result | {"body": None, "artifact": name}


async def check_schema(
    run: WorkerRun, schema: Any, output: DecodedOutput, data: bytes, label: str
) -> None:
    """Raise Failure INVALID_OUTPUT for an output that does not match; store it as an artifact."""
    if schema is None:
        return
    problem: str | None = "not JSON"
    if output.encoding == "json":
        problem = await run.schemas.problem(schema, output.value)
    if problem is not None:
        raise await reject_output(run, data, f"{label} does not match its schema: {problem}")


async def reject_output(run: WorkerRun, data: bytes, problem: str) -> Failure:
    """Store a rejected output as an artifact; return the Failure to raise."""
    await run.artifact(INVALID, data)
    hint = CommandHint("artifacts get", f"{run.job.name} {INVALID}", lead="to see it")
    return Failure(problem, declared="INVALID_OUTPUT", hint=hint)


def _parse_content_type(header: str) -> tuple[str, str]:
    kind, *parameters = (part.strip() for part in header.split(";"))
    charsets = (part.partition("=")[2].strip(" \"'") for part in parameters if _is_charset(part))
    charset = next(charsets, "utf-8")
    return kind, charset if _CHARSET.match(charset) else "utf-8"


def _is_charset(parameter: str) -> bool:
    return parameter.partition("=")[0].strip().lower() == "charset"
