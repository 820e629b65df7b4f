"""`llm_generate`: a text from a language model, as it streams in."""

from __future__ import annotations

import json
from typing import Any, Final

from draftsman.domain.job_payloads import LlmGenerate, parse
from draftsman.domain.outcome import Done, Outcome
from draftsman.errors import Failure
from draftsman.handlers.builtin.llm_anthropic import Anthropic
from draftsman.handlers.builtin.llm_openai import OpenAI
from draftsman.handlers.builtin.llm_provider import Completion, Provider, to_failure
from draftsman.handlers.builtin.result_content import (
    DecodedOutput,
    check_schema,
    reject_output,
    to_result,
)
from draftsman.handlers.builtin.strict_json import parse_json
from draftsman.handlers.context import RunContext
from draftsman.log import redact
from draftsman.outbound import secret_values, server_sent_events
from draftsman.outbound.http_client import HttpCall, HttpClient, OutboundResponse
from draftsman.outbound.http_failures import retry_after
from draftsman.outbound.timeouts import Timeouts
from draftsman.settings import LlmSettings

STEP: Final = "generate"
TEXT: Final = "generated.txt"
"""Artifact with a text that is too long for the result."""
MAX_ERROR_BODY: Final = 64 * 1024
PROVIDERS: Final[dict[str, Provider]] = {"openai": OpenAI(), "anthropic": Anthropic()}


async def llm_generate(ctx: RunContext) -> Outcome:
    """Generate once; what a run that was stopped had of it is lost, and asked for again."""
    asked = parse("llm_generate", ctx.job.payload)
    assert isinstance(asked, LlmGenerate)  # noqa: S101 - the type's own model
    return Done(await ctx.step(STEP, lambda invocation: _generate(ctx, asked, invocation)))


async def _generate(ctx: RunContext, asked: LlmGenerate, invocation: str) -> dict[str, Any]:
    settings = _settings(ctx, asked.llm)
    key = (
        None if settings.key is None else secret_values.read_secret(settings.key, "the model's key")
    )
    provider = PROVIDERS[settings.provider]
    url, headers, body = provider.request(asked, settings, key)
    headers |= {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "idempotency-key": invocation,
    }
    call = HttpCall("POST", url, headers, json.dumps(body, ensure_ascii=False).encode())
    trusted = [] if settings.base_url is None else [settings.base_url]
    client = HttpClient(ctx.settings.http, trusted=trusted)
    made = Completion(model=asked.model or settings.model)
    try:
        async with client.stream(call, Timeouts.of(ctx.limits)) as answer:
            ctx.log(f"POST {answer.where}: {answer.status} {answer.reason}")
            if answer.status != 200:
                raise await _refused(answer, key)
            async for event in server_sent_events.parse_events(answer.chunks()):
                provider.add_event(event, made)
                if made.over:
                    break
    finally:
        if made.input_tokens or made.output_tokens:
            await ctx.usage(made.usage())
    if not made.over and made.finish is None:
        text = f"{answer.where}: the stream ended before the model did"
        raise Failure(text, origin="llm", code="stream_ended")
    return await _result(ctx, asked, made)


async def _result(ctx: RunContext, asked: LlmGenerate, made: Completion) -> dict[str, Any]:
    text = made.text
    data = text.encode("utf-8", "replace")
    if asked.output is None:
        found = DecodedOutput(text, "text")
        if not text.strip():
            raise await reject_output(ctx, data, f"the model wrote nothing (finish: {made.finish})")
    else:
        found = _as_json(text)
        what = f"what the model wrote (finish: {made.finish})"
        await check_schema(ctx, asked.output, found, data, what)
    about = {"model": made.model, "finish": made.finish, "usage": made.usage()}
    return about | await to_result(ctx, data, found, TEXT)


def _as_json(text: str) -> DecodedOutput:
    """Return the JSON that a model wrote, out of its fence if it is in one."""
    inner = text.strip()
    if inner.startswith("```") and inner.endswith("```"):
        inner = inner[3:-3].removeprefix("json")
    try:
        return DecodedOutput(parse_json(inner), "json")
    except ValueError:
        return DecodedOutput(text, "text")


async def _refused(answer: OutboundResponse, key: str | None) -> Failure:
    raw = (await answer.beginning(MAX_ERROR_BODY)).decode("utf-8", "replace")
    text = redact(secret_values.redact_values(raw, key or ""))
    try:
        body = parse_json(text)
    except ValueError:
        body = {"error": {"message": text}}
    return to_failure(body, answer.where, answer.status, retry_after(answer.headers))


def _settings(ctx: RunContext, name: str | None) -> LlmSettings:
    known = ctx.settings.llm
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name is None or name not in known:
        names = ", ".join(sorted(known)) or "none"
        wanted = "say which llm" if name is None else f"there is no llm {name!r} on this worker"
        raise Failure(f"{wanted}; configured are: {names}", origin="llm", code="no_such_llm")
    return known[name]
