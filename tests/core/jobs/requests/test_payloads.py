"""Payloads of the built-in types, and the error line for an invalid payload."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

from draftsman.errors import UsageError
from draftsman.jobs.requests.payloads import MODELS, parse
from draftsman.log import redact
from tests.support.cases import cases

GOOD: dict[str, list[dict[str, Any]]] = {
    "http_request": [
        {"url": "https://example.org/a?b=c"},
        {"url": "http://[::1]:80/", "method": "POST", "json": None},
        {"url": "http://a/", "method": "DELETE", "text": "x", "headers": {"X-A": "b"}},
        {"url": "http://a/", "output": {"properties": {"pattern": {"type": "string"}}}},
    ],
    "webhook_dispatch": [{"webhook": "billing", "type": "invoice.paid", "data": {"n": 1}}],
    "llm_generate": [
        {"prompt": "Say something"},
        {"messages": [{"role": "user", "content": "Hi"}], "temperature": 0.5, "stop": ["."]},
    ],
    "execute_tool": [{"tool": "count"}, {"tool": "count", "input": [1, 2]}],
    "ask_people": [
        {"text": "Which?"},
        {"text": "Which?", "choices": ["a", {"value": "b", "label": "B"}], "default": "a"},
        {"text": "Push?", "kind": "approval", "action": {"push": "x"}, "expires_in": 0},
    ],
    "send_notification": [{"text": "done"}, {"text": "done", "targets": ["slack:C1/17.2", "log"]}],
    "merge_pull_request": [{"job": 142}],
}
URL = {"url": "http://a/"}


@cases("type", MODELS)
def test_valid_payloads_are_accepted(type: str) -> None:
    for payload in GOOD[type]:
        parse(type, payload)


@cases(
    ("type", "payload", "expected"),
    [
        ("http_request", {}, "url: is required"),
        (
            "http_request",
            {"url": "ftp://a/"},
            "url 'ftp://a/': must be a URL with a host",
        ),
        ("http_request", {"url": "http:///x"}, "must be a URL with a host"),
        ("http_request", {"url": "http://a:0/"}, "must be a URL with a host"),
        ("http_request", {"url": "http://a:99999/"}, "invalid URL"),
        ("http_request", {"url": "http://u:p@a/"}, "use a credential"),
        ("http_request", {"url": "http://a/ b"}, "may not contain spaces"),
        ("http_request", {"url": "http://a/\r\nX: y"}, "may not contain spaces"),
        ("http_request", {"url": 7}, "url: must be text"),
        ("http_request", URL | {"method": "get"}, "method 'get': choose: GET, HEAD"),
        ("http_request", URL | {"metod": "GET"}, "metod 'GET': unknown key; allowed: url, method"),
        ("http_request", URL | {"text": "x"}, "GET takes no body"),
        ("http_request", URL | {"method": "PUT", "text": "", "json": 1}, "not both"),
        (
            "http_request",
            URL | {"headers": {"Authorization": "x"}},
            "may not contain authorization",
        ),
        ("http_request", URL | {"headers": {"Host": "b"}}, "host is set by draftsman"),
        ("http_request", URL | {"headers": {"X-A": "b\r\nc"}}, "only printable ASCII"),
        ("http_request", URL | {"headers": {"X A": "b"}}, "'X A' is not a valid header name"),
        ("http_request", URL | {"expect_status": [99]}, "expect_status.0"),
        ("http_request", URL | {"output": {"pattern": "(a+)+$"}}, "pattern is not allowed"),
        (
            "http_request",
            URL | {"output": {"anyOf": [{"uniqueItems": True}]}},
            "uniqueItems",
        ),
        ("webhook_dispatch", {"webhook": "b", "type": "a b"}, "type 'a b'"),
        ("llm_generate", {}, "specify exactly one of prompt and messages"),
        ("llm_generate", {"prompt": "a", "messages": [{"role": "user", "content": "b"}]}, "one of"),
        ("llm_generate", {"messages": [{"role": "system", "content": "b"}]}, "messages.0.role"),
        (
            "llm_generate",
            {"prompt": "a", "max_tokens": "9"},
            "max_tokens '9': must be a whole",
        ),
        ("execute_tool", {"input": 1}, "tool: is required"),
        ("ask_people", {"text": "Which?", "freeform": False}, "a question needs choices"),
        (
            "ask_people",
            {"text": "Which?", "kind": "approval", "choices": ["a"]},
            "an approval takes",
        ),
        (
            "ask_people",
            {"text": "Which?", "default": "a", "choices": ["b"]},
            "not among the choices",
        ),
        ("ask_people", {"text": "x" * 3001}, "text"),
        ("send_notification", {"text": ""}, "text '': must not be empty"),
        (
            "send_notification",
            {"text": "a", "targets": ["none"]},
            "'none' is not a target; use log, webhook:NAME, forge:NAME/OWNER/REPO#NUMBER, ma",
        ),
    ],
    ids=str,
)
def test_invalid_payloads_are_refused_in_one_line(
    type: str, payload: dict[str, Any], expected: str
) -> None:
    with pytest.raises(UsageError) as raised:
        parse(type, payload)
    message = redact(str(raised.value))  # as people see it
    assert message.startswith(f"payload of {type}:")
    assert expected in message
    assert "\n" not in message


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    deep: dict[str, Any] = reduce(lambda inner, _: {"not": inner}, range(500), {})
    with pytest.raises(UsageError, match="output: a schema may be nested at most 100 levels"):
        parse("llm_generate", {"prompt": "a", "output": deep})
