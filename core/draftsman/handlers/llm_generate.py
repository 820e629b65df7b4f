"""`llm_generate`: a text from a language model, as it streams in."""

from __future__ import annotations

import json
from typing import Any, Final

from draftsman.domain.outcome import Done, Outcome
from draftsman.domain.payload import LlmGenerate, parse
from draftsman.errors import Failure
from draftsman.handlers.context import RunContext
from draftsman.handlers.json_text import read_json
from draftsman.handlers.llm import Generated, Provider, failure_of
from draftsman.handlers.llm_anthropic import Anthropic
from draftsman.handlers.llm_openai import OpenAI
from draftsman.handlers.output import Read, checked, invalid, shaped
from draftsman.log import redact
from draftsman.outbound import secret, sse
from draftsman.outbound.client import Answer, Call, Client
from draftsman.outbound.failures import retry_after
from draftsman.outbound.limit import Patience
from draftsman.settings import LlmSettings

STEP: Final = "generate"
TEXT: Final = "generated.txt"
"""Artifact with a text that is too long for the result."""
MOST_ERROR: Final = 64 * 1024
PROVIDERS: Final[dict[str, Provider]] = {"openai": OpenAI(), "anthropic": Anthropic()}


async def llm_generate(ctx: RunContext) -> Outcome:
    """Generate once; what a run that was stopped had of it is lost, and asked for again."""
    asked = parse("llm_generate", ctx.job.payload)
    assert isinstance(asked, LlmGenerate)  # noqa: S101 - the type's own model
    return Done(await ctx.step(STEP, lambda invocation: _generate(ctx, asked, invocation)))


async def _generate(ctx: RunContext, asked: LlmGenerate, invocation: str) -> dict[str, Any]:
    settings = _settings(ctx, asked.llm)
    key = None if settings.key is None else secret.read(settings.key, "the model's key")
    provider = PROVIDERS[settings.provider]
    url, headers, body = provider.request(asked, settings, key)
    headers |= {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "idempotency-key": invocation,
    }
    call = Call("POST", url, headers, json.dumps(body, ensure_ascii=False).encode())
    trusted = [] if settings.base_url is None else [settings.base_url]
    client = Client(ctx.settings.http, trusted=trusted)
    made = Generated(model=asked.model or settings.model)
    try:
        async with client.stream(call, Patience.of(ctx.limits)) as answer:
            ctx.log(f"POST {answer.where}: {answer.status} {answer.reason}")
            if answer.status != 200:
                raise await _refused(answer, key)
            async for event in sse.events(answer.chunks()):
                provider.take(event, made)
                if made.over:
                    break
    finally:
        if made.input_tokens or made.output_tokens:
            await ctx.usage(made.usage())
    if not made.over and made.finish is None:
        text = f"{answer.where}: the stream ended before the model did"
        raise Failure(text, origin="llm", code="stream_ended")
    return await _result(ctx, asked, made)


async def _result(ctx: RunContext, asked: LlmGenerate, made: Generated) -> dict[str, Any]:
    text = made.text
    data = text.encode("utf-8", "replace")
    if asked.output is None:
        found = Read(text, "text")
        if not text.strip():
            raise await invalid(ctx, data, f"the model wrote nothing (finish: {made.finish})")
    else:
        found = _as_json(text)
        what = f"what the model wrote (finish: {made.finish})"
        await checked(ctx, asked.output, found, data, what)
    about = {"model": made.model, "finish": made.finish, "usage": made.usage()}
    return about | await shaped(ctx, data, found, TEXT)


def _as_json(text: str) -> Read:
    """Return the JSON that a model wrote, out of its fence if it is in one."""
    inner = text.strip()
    if inner.startswith("```") and inner.endswith("```"):
        inner = inner[3:-3].removeprefix("json")
    try:
        return Read(read_json(inner), "json")
    except ValueError:
        return Read(text, "text")


async def _refused(answer: Answer, key: str | None) -> Failure:
    raw = (await answer.beginning(MOST_ERROR)).decode("utf-8", "replace")
    text = redact(secret.without(raw, key or ""))
    try:
        body = read_json(text)
    except ValueError:
        body = {"error": {"message": text}}
    return failure_of(body, answer.where, answer.status, retry_after(answer.headers))


def _settings(ctx: RunContext, name: str | None) -> LlmSettings:
    known = ctx.settings.llm
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name is None or name not in known:
        names = ", ".join(sorted(known)) or "none"
        wanted = "say which llm" if name is None else f"there is no llm {name!r} on this worker"
        raise Failure(f"{wanted}; configured are: {names}", origin="llm", code="no_such_llm")
    return known[name]
