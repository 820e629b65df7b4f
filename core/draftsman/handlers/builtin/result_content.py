"""What came back: a part of the result, a file where it is long, kept where it is wrong."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Any, Final

from draftsman.domain.text import clean_within_limit
from draftsman.errors import Failure, UsageError
from draftsman.handlers.builtin.strict_json import parse_json
from draftsman.handlers.context import RunContext

INLINE: Final = 256 * 1024
"""Bytes of JSON up to which an output is part of the result."""
INVALID: Final = "invalid-output"
"""Artifact with an output that could not be used."""
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
    """Bytes made readable. `encoding` is `json`, `text` or `base64`."""

    value: Any
    encoding: str
    replaced: bool = False
    """Whether bytes that are no text were replaced."""


def read(data: bytes, content_type: str = "") -> DecodedOutput:
    """Return bytes as what their type says, and as base64 where that is no text."""
    kind, charset = _type(content_type)
    if not data:
        return DecodedOutput("", "text")
    if _JSON.match(kind):
        try:
            return DecodedOutput(clean_within_limit(parse_json(data), INLINE, "the output"), "json")
        except (ValueError, UsageError):
            pass  # then as the text that it is
    declared = bool(_JSON.match(kind) or _TEXT.match(kind))
    try:
        return DecodedOutput(data.decode(charset), "text")
    except UnicodeError:
        if declared or kind.startswith("text/"):
            return DecodedOutput(data.decode(charset, "replace"), "text", replaced=True)
    return DecodedOutput(base64.b64encode(data).decode("ascii"), "base64")


async def to_result(
    ctx: RunContext, data: bytes, found: DecodedOutput, name: str
) -> dict[str, Any]:
    """Return the part of a result that holds the output, or names the artifact that does."""
    result: dict[str, Any] = {"encoding": found.encoding, "bytes": len(data)}
    if found.replaced:
        result["replaced"] = True
    try:
        return result | {"body": clean_within_limit(found.value, INLINE, "the output")}
    except UsageError:
        await ctx.artifact(name, data)
        return result | {"body": None, "artifact": name}


async def check_schema(
    ctx: RunContext, schema: Any, found: DecodedOutput, data: bytes, what: str
) -> None:
    """Raise Failure INVALID_OUTPUT for JSON that does not fit, and keep it for the reader."""
    if schema is None:
        return
    why: str | None = "it is not JSON"
    if found.encoding == "json":
        why = await ctx.schemas.problem(schema, found.value)
    if why is not None:
        raise await reject_output(ctx, data, f"{what} is not what was asked for: {why}")


async def reject_output(ctx: RunContext, data: bytes, why: str) -> Failure:
    """Keep an output that cannot be used; return the Failure to raise."""
    await ctx.artifact(INVALID, data)
    text = f"{why}; it is kept: draftsman artifacts get {ctx.job.name} {INVALID}"
    return Failure(text, declared="INVALID_OUTPUT")


def _type(header: str) -> tuple[str, str]:
    kind, *parameters = (part.strip() for part in header.split(";"))
    given = (part.partition("=")[2].strip(" \"'") for part in parameters if _is_charset(part))
    charset = next(given, "utf-8")
    return kind, charset if _CHARSET.match(charset) else "utf-8"


def _is_charset(parameter: str) -> bool:
    return parameter.partition("=")[0].strip().lower() == "charset"
