"""The words of all messages in each medium, as accepted snapshots; and what holds for any message.

`make wording` accepts changed words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from syrupy.assertion import SnapshotAssertion

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.deliveries.documents.builder import build_document
from draftsman.deliveries.documents.document import (
    Choices,
    InFile,
    Paragraph,
    Quote,
    elsewhere,
)
from draftsman.deliveries.documents.plain import render_plain
from draftsman_bots.forges.deliveries.render import render as render_comment
from draftsman_bots.slack.deliveries.render import render as render_blocks
from draftsman_bots.trello.deliveries.render import render as render_card
from tests.bots.messages import messages, words
from tests.core.deliveries.documents.examples import ANNA, BEN, HOSTILE, LONG, examples
from tests.support.cases import cases

EXAMPLES: Final = examples()
NAMES: Final = {"5f1e0c9a8b7d6e5f4a3b2c1d": "annaberg"}
FORGE: Final = "github/acme/pay#12"
WORDS: Final = words("*_`@<>&#:/\n")
PEOPLE: Final = (ANNA, BEN)


def slack(message: Message) -> str:
    """Return the blocks of a message as text, a line each."""
    return "\n".join(_lines(render_blocks(message).blocks))


def _lines(blocks: list[dict[str, Any]]) -> Iterator[str]:
    for block in blocks:
        match block["type"]:
            case "section":
                yield block["text"]["text"]
            case "context":
                yield " | ".join(element["text"] for element in block["elements"])
            case "actions":
                yield " ".join(f"[{_label(element)}]" for element in block["elements"])


def _label(element: dict[str, Any]) -> str:
    text = element.get("text") or element["placeholder"]
    return str(text["text"])


def forge(message: Message) -> str:
    """Return a message as a comment of a forge."""
    return render_comment(replace(message, target=FORGE))


MEDIA: Final[dict[str, Callable[[Message], str]]] = {
    "terminal": render_plain,
    "slack": slack,
    "trello": lambda message: render_card(message, NAMES),
    "forge": forge,
}


@cases("name", EXAMPLES)
def test_a_message_has_the_accepted_words(name: str, snapshot: SnapshotAssertion) -> None:
    message = EXAMPLES[name]
    shown = {medium: _short(render(message)) for medium, render in MEDIA.items()}
    assert "\n\n".join(f"--- {medium}\n{text}" for medium, text in shown.items()) == snapshot(
        name=name
    )


def _short(text: str) -> str:
    """Return a text in which a long passage is counted."""
    sentence = LONG[:61]
    count = text.count(sentence)
    return text.replace(sentence * count, f"({count} sentences) ") if count > 2 else text


def test_the_examples_have_every_kind_of_message() -> None:
    assert {message.kind for message in EXAMPLES.values()} == set(DeliveryKind)
    assert len(EXAMPLES) >= 60


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(messages(WORDS, WORDS, lambda name, _: replace(BEN, name=name)))
def test_no_medium_mentions_a_person_who_has_no_account_there(message: Message) -> None:
    """Texts have every character that begins a mention, an emoji, a link or a command."""
    for text in (slack(message), forge(message), render_card(message, NAMES)):
        assert "<@" not in text
        assert "<!everyone" not in text
        assert "@annaberg" not in text


@cases("name", [name for name in EXAMPLES if "long" in name])
def test_what_is_cut_off_is_said_with_the_place_to_read_it(name: str) -> None:
    message = EXAMPLES[name]
    parts = build_document(message)
    cut = [
        part
        for part in parts
        if isinstance(part, Paragraph | Quote) and len(str(part.text)) > part.most
    ]
    assert cut or message.subject.error == LONG
    for text in (slack(message), forge(message), render_card(message, NAMES)):
        assert "…" in text
        assert not any(isinstance(part, InFile) for part in parts) or "The full text" in text
        assert not any(map(elsewhere, parts)) or "To read it: `draftsman show D-7`" in text


def test_choices_that_are_left_out_can_be_read_elsewhere() -> None:
    message = EXAMPLES["question with many choices"]
    (choices,) = (part for part in build_document(message) if isinstance(part, Choices))
    assert len(choices.items) == 120
    for text in (forge(message), render_card(message, NAMES)):
        assert "120. region 120" in text


def test_hostile_text_has_no_effect_in_any_medium() -> None:
    hostile = [message for name, message in EXAMPLES.items() if "hostile" in name]
    assert len(hostile) == 5
    for message in hostile:
        assert HOSTILE not in forge(message)
        assert "\n/approve" not in forge(message)
        assert "<!everyone>" not in slack(message)
