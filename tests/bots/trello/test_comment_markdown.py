"""Every comment of draftsman by the rules of Markdown: nothing of people or agents formats it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from hypothesis import HealthCheck, given, settings

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.deliveries.documents.markdown import strong
from draftsman.jobs.job import Mode, RequestSummary, Status
from draftsman.questions.question import QuestionKind, QuestionStatus
from draftsman.schedules.job_form import JobForm
from draftsman.schedules.template import Template, TemplateDefinition
from draftsman_bots.trello.deliveries.checklists import item_names
from draftsman_bots.trello.deliveries.markdown import code, escape, one_line, with_marker
from draftsman_bots.trello.deliveries.render import render
from draftsman_bots.trello.requests.template_jobs import refusal_comment
from draftsman_testing.channel import samples
from draftsman_testing.channel.samples import question
from draftsman_testing.trello.comment_markdown import Seen, parse
from tests.bots.messages import messages
from tests.bots.trello.channel_fixtures import person
from tests.bots.trello.test_render import ACCOUNTS, NAMES, WORDS
from tests.support.cases import cases

BLOCKS: Final = {
    "paragraph", "fence", "blockquote", "ordered_list", "bullet_list", "list_item",
}  # fmt: skip
INLINE: Final = {"strong", "code_inline", "link"}
MARKER: Final = "00000000-0000-4000-8000-000000000000"
HOSTILE: Final = (
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "# Heading\n## Second\ntext\n====\nmore\n----",
    "- a\n  - b\n    - c\n1. x\n   1. y",
    "```python\nprint('x')\n```\n~~~\ny\n~~~",
    "<b>bold</b> <script>alert(1)</script>\n<!-- x -->\n<div>\n",
    "*a* **b** _c_ __d__ ~~e~~ `f` ``g`` \\*h\\*",
    "[a](https://evil.test) ![b](https://evil.test/x.png) [c]: https://evil.test\n[c]",
    "@ben @board @card @anna",
    ":smile: https://evil.test www.evil.test a@example.org",
    "> quote\n>> nested\n\n    indented code\n\ttab",
    "***\n---\n___\n+ plus\n* star",
    "&lt;b&gt; &amp; &#35; \\# end\\",
    "a  \nb\\\nc",
    "1) one\n2) two\n\n\n\n10. ten",
)


def comment(message: Message, **options: Any) -> Seen:
    """Return a message as people see it."""
    return parse(with_marker(render(message, NAMES, **options), message.marker))


def check(seen: Seen, marker: str) -> None:
    """Check that a comment has only the formats that draftsman uses, and ends with its marker."""
    assert set(seen.blocks) <= BLOCKS, seen
    assert seen.inline <= INLINE, seen
    assert all(link.startswith(("http://", "https://")) for link in seen.links)
    assert seen.text.endswith(f"\ndraftsman:{marker}"), "no block swallows the marker"
    assert seen.blocks[-1] == "paragraph"


def shown(text: str) -> list[str]:
    """Return the lines with a text, without spaces and the characters that make it harmless."""
    plain = text.replace("\u200b", "").replace("\u00a0", " ").replace("\t", " ")
    return [line for raw in plain.split("\n") if (line := "".join(raw.split()))]


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(messages(WORDS, ACCOUNTS, person))
def test_any_message_has_only_the_formats_of_draftsman(message: Message) -> None:
    check(comment(message), message.marker)


@cases("text", HOSTILE)
def test_a_hostile_text_is_shown_as_it_is(text: str) -> None:
    choices = [{"value": str(n), "label": text, "description": text} for n in range(2)]
    fields: dict[str, Any] = {"text": text, "choices": choices, "context_snippet": text}
    for kind in (QuestionKind.INPUT, QuestionKind.APPROVAL):
        asked = question(**fields, kind=kind, action={"run": text})
        message = samples.message(DeliveryKind.QUESTION, question=asked)
        seen = comment(message, checklist=True)
        check(seen, message.marker)
        lines = shown(seen.text)
        for line in shown(text):
            assert any(line in each for each in lines), (line, seen.text)
        assert [link for link in seen.links if "evil" in link] == []


@cases("text", HOSTILE)
@cases("kind", DeliveryKind)
def test_a_hostile_text_in_any_kind_of_message(kind: DeliveryKind, text: str) -> None:
    closed = question(
        text=text,
        status=QuestionStatus.ANSWERED,
        resolution={"outcome": "answered", "via": "person", "text": text, "by": [text]},
    )
    built = samples.message(
        kind, question=closed, payload={"text": text, "progress": {"plan": text, "line": text}}
    )
    for status in (Status.COMPLETED, Status.FAILED, Status.RUNNING, Status.CANCELED):
        subject = replace(
            built.subject, title=text, status=status, error=text, cancel_reason=text,
            request=RequestSummary(Mode.FIX, text, text, text, text), invoker=text,
            pause_reason=text, paused_by=text, group=text, group_stop=text, usage="1 token",
            result={"summary": text, "pr_url": "https://x.test/1", "notes": text},
        )  # fmt: skip
        message = replace(built, subject=subject)
        check(comment(message), message.marker)


@cases("text", HOSTILE)
def test_items_of_checklists_and_missing_parameters(text: str) -> None:
    asked = question(choices=[{"value": "a", "label": text}, {"value": "b", "label": "b"}])
    for name in item_names(asked):
        seen = parse(name)
        assert (seen.blocks, seen.inline) == (["paragraph"], set())
    definition = TemplateDefinition.model_validate(
        {"parameters": {"properties": {"version": {"type": "string", "description": text}}}}
    )
    template = Template("bump", 1, definition, "anna", datetime(2026, 1, 1, tzinfo=UTC))
    form = JobForm(template, definition.inputs)
    body = refusal_comment(form, {"version": text, text: "is required"})
    check(parse(with_marker(body, MARKER)), MARKER)


def test_choices_that_are_left_out_are_no_item_of_the_list() -> None:
    many = [{"value": str(n), "label": "x" * 75} for n in range(500)]
    message = samples.message(DeliveryKind.QUESTION, question=question(choices=many))
    seen = comment(message)
    at = seen.blocks.index("ordered_list")
    left = next(line for line in seen.text.split("\n") if "more: draftsman" in line)
    assert left.startswith("… and ")
    items = seen.blocks[at:].count("list_item")
    assert f"… and {500 - items} more" in seen.text
    assert "paragraph" in seen.blocks[at + 2 * items :]


def test_a_block_of_code_has_a_paragraph_of_its_own() -> None:
    for text in HOSTILE:
        seen = parse(f"a\n\n{code(text)}\n\n{escape(text)}")
        assert "fence" in seen.blocks


@cases("text", [*HOSTILE, "(x)", "\u00a1hola!", "\u2003 x \u00a0", "\\", "*"])
def test_a_bold_text_is_bold_as_a_whole(text: str) -> None:
    seen = parse(f"\u2753 **D-1** {strong(one_line(text, 200))} asks:")
    (line,) = seen.text.split("\n")
    assert line.startswith("\u2753 D-1 "), line
    assert line.endswith(" asks:"), line
    whole = "".join(shown(" ".join(text.split())))
    assert "".join(shown(line)) == f"\u2753D-1{whole}asks:"


def test_items_follow_a_paragraph_and_have_one_line_each() -> None:
    choices = [{"value": "a", "label": "one\n\n# two", "description": "- x\n\n1. y"}]
    message = samples.message(DeliveryKind.QUESTION, question=question(choices=choices))
    seen = comment(message)
    at = seen.blocks.index("ordered_list")
    assert seen.blocks[at : at + 4] == ["ordered_list", "list_item", "paragraph", "paragraph"]
