# ruff: noqa: RUF001
"""What keyboards, editors and mail programs make of a text means the same in each channel."""

from __future__ import annotations

from datetime import timedelta
from email.message import EmailMessage
from itertools import product
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from draftsman.questions.question import Question, QuestionKind
from draftsman_bots.conversation.parser import FORGE, REPLY, ParsedText, parse, parse_slack
from draftsman_bots.conversation.requests import JobRequest
from draftsman_bots.conversation.resolution import (
    Outcome,
    Place,
    PlacedJob,
    PlacedQuestion,
    Talk,
    WrittenText,
    resolve,
)
from draftsman_bots.conversation.typography import plain, without_signature
from draftsman_bots.mail.incoming import read_text
from draftsman_testing.channel import samples
from draftsman_testing.channel.samples import WHEN
from tests.bots.conversation.test_spellings import ME, in_slack
from tests.support.cases import cases

APPROVAL: Final = samples.question(ordinal=1, kind=QuestionKind.APPROVAL, choices=[])
CHOICE: Final = samples.question(ordinal=2, freeform_allowed=False)
SIGNATURES: Final = (
    "Sent from my iPhone", "Sent from my iPad.", "Sent from my Galaxy S24",
    "Sent from my T-Mobile 4G LTE Device", "sent from my mobile phone", "Sent via Superhuman",
    "Sent from Outlook for iOS", "Sent from [Outlook for iOS](https://aka.ms/o0ukef)",
    "Sent from Outlook for iOS<https://aka.ms/o0ukef>", "Get Outlook for Android",
    "Get [Outlook for iOS](https://aka.ms/o0ukef)", "Sent from Mail for Windows",
    "Sent from Yahoo Mail on Android", "Sent with Proton Mail secure email.",
    "Sent from Gmail Mobile", "Von meinem iPhone gesendet", "Von meinem iPad gesendet.",
    "Diese Nachricht wurde von meinem Android-Gerät mit GMX Mail gesendet.",
    "Gesendet mit der GMX Mail App", "Gesendet von Outlook für iOS",
    "Gesendet von Mail für Windows", "Outlook für Android beziehen",
    "Holen Sie sich Outlook für iOS", "Envoyé de mon iPhone", "Envoyé à partir de Outlook pour iOS",
    "Obtenir Outlook pour Android", "Télécharger Outlook pour iOS", "Enviado desde mi iPhone",
    "Enviado do meu iPhone", "Inviato da iPhone", "Inviato dal mio iPad", "Scarica Outlook per iOS",
    "Verstuurd vanaf mijn iPhone", "Verzonden vanaf Outlook voor Android",
    "Outlook voor iOS downloaden", "Skickat från min iPhone", "Sendt fra min iPhone",
    "Wysłane z iPhone'a", "Отправлено с iPhone", "iPhoneから送信", "发自我的iPhone",
    "--\nBob", "-- \nBob\nACME GmbH\n+49 30 1234", "--\nBob\n\nSent from my iPhone",
    "On Mon, 30 Nov 2026 at 05:00, draftsman <d@example.org> wrote:\n> Deploy?",
    "Am 30.11.26 um 05:00 schrieb draftsman <d@example.org>:\n> Deploy?",
)  # fmt: skip
SIGNED: Final = {
    "approve": "approve",
    "Deny: too risky": "deny: too risky",
    "request changes use v2": "request-changes: use v2",
    "red": "answer: red",
}
DECISIONS: Final = {
    "approve": [
        "approve", "Approve", "APPROVE", " approve ", "approve.", "Approve!", "“approve”",
        "„approve“", "«approve»", "« approve »", "‘approve’", "‹approve›", "”approve”", "`approve`",
        "*approve*", "**approve**", "_approve_", '"approve"', "approve\xa0", "\xa0approve",
        "\u202fapprove\u2007", "approve\u200b", "\ufeffapprove",
        "ａｐｐｒｏｖｅ", "/approve", "/Approve.",
        "⁄approve", "／approve", "/ approve", "/approve D-7/1", "/approve D‑7/1", "/approve D–7/1",
        "/approve\xa0D-7/1", "/approve D-7⁄1", "approve D−7/1", "approve D-7/1.", "/approve: D-7/1",
    ],
    "deny": ["deny", "Deny.", "„deny“", "deny,", "/deny", "/deny!", "deny\xa0", "deny D‑7/1"],
    "deny: too risky": [
        "deny too risky", "deny: too risky", "deny, too risky", "deny; too risky",
        "deny — too risky", "deny – too risky", "deny - too risky", "deny -- too risky",
        "deny—too risky", "deny–too risky", "Deny\xa0too risky", "deny\xa0: too risky",
        "/deny — too risky", "/deny D-7/1 – too risky", "deny D‑7/1\xa0too risky",
        "deny\ntoo risky", "deny:\n\ntoo risky", "ｄｅｎｙ too risky",
    ],
    "request-changes": ["/request-changes", "Request changes.", "„request changes“"],
    "request-changes: use v2": [
        "request changes use v2", "Request changes: use v2", "request-changes use v2",
        "request‑changes use v2", "request–changes use v2", "request\xa0changes: use v2",
        "/request-changes use v2", "/request‑changes use v2", "/request changes — use v2",
        "request changes — use v2", "Request Changes\nuse v2",
    ],
    "answer: red": [
        "red", "Red.", "“red”", "„red“", "«red»", "« red »", "‚red‘", '"red"', "`red`", "*red*",
        "red\xa0", "ｒｅｄ", "/answer red", "/answer\xa0red", "/answer D‑7/2 red", "1", "1.", "１",
    ],
    "reply": [
        "approved", "Approved!", "yes", "“yes”", "ok", "OK.", "LGTM", "lgtm!", "y", "no", "denied",
        "approve\nbut only on Monday", "Approve\n\nBob", "approve\n---\nonly if it works",
        "Approved,\nBob", "/approve now", "/approve — if it works", "/approve D-7/1 if it works",
        "approve D-7/1 after lunch", "yes\n\nSent from my iPhone",
        "aprove", "Aproove!", "aproved", "dney", "request chnages", "aprove\n\nBob",
    ],
}  # fmt: skip
"""Spellings by what they mean where an approval and a question with choices are open."""
OPTIONS: Final = [
    "--repo=pay it", "--repo pay it", "—repo=pay it", "—repo pay it", "–repo=pay it",
    "−-repo=pay it", "-−repo=pay it", "−−repo=pay it", "-—repo=pay it", "‑‑repo=pay it",
    "---repo=pay it", "-repo=pay it", "-repo pay it", "-Repo=pay it", "--REPO=pay it",
    "--repo = pay it", "--repo =\xa0pay it", "--repo: pay it", "--repo:pay it",
    "--repo\xa0pay it", "--repo=pay\xa0it", "--repo\u202f=\u202fpay it", "--repo=pay\u200b it",
    '--repo="pay" it', "--repo='pay' it", "--repo=“pay” it", "--repo=„pay“ it", "--repo=„pay” it",
    "--repo=”pay” it", "--repo=«pay» it", "--repo=« pay » it", "--repo=«\xa0pay\xa0» it",
    "--repo=»pay« it", "--repo=‘pay’ it", "--repo=‚pay‘ it", "--repo=‹pay› it", "--repo=「pay」 it",
    "--repo „pay“ it", "—repo «pay» it", "-repo=“pay” it", "it --repo=pay", "it —repo=pay",
    "it −-repo=pay", "it -repo=pay", "it --repo=„pay“", "it --repo=«pay»", "it\xa0--repo=pay",
    "it --repo=pay\xa0", "--repo=pay „it“", "--repo=pay «it»", "--repo=pay “it”",
]  # fmt: skip
"""Spellings of a request for the repository `pay`."""
NAMED: Final = {
    "—repot=pay it": "unknown option --repot",
    "--repo=„“ it": "--repo needs a value",
    "—repo= it": "--repo needs a value",
    "-repo=pay --repo=web it": "--repo is set twice",
    "–mode=«deploy» it": "--mode must be fix or investigate, not 'deploy'",
    "„“": "the text is missing",
}


def by_mail(text: str) -> ParsedText | None:
    """Parse what the author of a mail wrote."""
    mail = EmailMessage()
    mail.set_content(text, cte="base64")
    return parse(read_text(mail.as_bytes()), REPLY)


CHANNELS: Final = {
    "Slack": (Talk.ALL, in_slack),
    "Trello": (Talk.PERMITTED, lambda text: parse(text, REPLY, name=ME)),
    "forges": (Talk.NONE, lambda text: parse(text, FORGE, name=ME)),
    "mail": (Talk.ALL, by_mail),
}


def meant(channel: str, text: str, *questions: Question) -> str:
    """Return what a text is taken for in a channel with these open questions."""
    talk, read = CHANNELS[channel]
    place = Place(talk, [PlacedQuestion(item) for item in questions], [PlacedJob(7)])
    result = resolve(WrittenText(read(text), "key", WHEN + timedelta(minutes=1)), place)
    if result.outcome is not Outcome.ANSWER:
        return "reply" if result.outcome is Outcome.WRONG_KIND else str(result.outcome)
    verb = result.decision.verb if result.decision else "answer"
    detail = result.decision.reason if result.decision else result.text
    if verb == "answer":
        detail = "red" if plain(detail or "").strip(" .") == "1" else _letters(detail or "")
    return f"{verb}: {detail}" if detail else verb


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, plain(text))).casefold()


@cases("channel", CHANNELS)
def test_a_signature_changes_no_decision_and_no_choice(channel: str) -> None:
    for signature, gap, (text, expected) in product(SIGNATURES, ("\n", "\n\n"), SIGNED.items()):
        signed = f"{text}{gap}{signature}"
        found = meant(channel, signed, CHOICE if text == "red" else APPROVAL)
        assert found == expected, signed


@cases("channel", CHANNELS)
def test_each_spelling_of_a_decision_counts_or_gets_a_reply(channel: str) -> None:
    for expected, texts in DECISIONS.items():
        for text in texts:
            asked = [APPROVAL] if expected == "reply" else [APPROVAL, CHOICE]
            assert meant(channel, text, *asked) == expected, text


@cases("text", [text for text in DECISIONS["reply"] if not text.startswith("yes")])
def test_the_reply_to_a_word_for_a_decision_is_never_left_out(text: str) -> None:
    place = Place(Talk.PERMITTED, [PlacedQuestion(APPROVAL)], [PlacedJob(7)])
    assert resolve(WrittenText(parse(text, REPLY, name=ME), "key"), place).is_certain


@cases("channel", CHANNELS)
def test_talk_of_decisions_decides_nothing(channel: str) -> None:
    for text in (
        "approve?",
        "approved by whom?",
        "I approve",
        "deny-list",
        "approve it",
        "approver",
    ):
        assert meant(channel, text, APPROVAL) in ("talk", "reply"), text


@cases("text", OPTIONS)
def test_each_spelling_of_an_option_is_understood(text: str) -> None:
    expected = JobRequest("it", "fix", {"repo": "pay"})
    on_forge = parse(f"@draftsman fix {text}", FORGE, name=ME)
    assert on_forge is not None
    assert parse_slack(f"fix {text}").request == on_forge.request == expected


@cases(("text", "problem"), NAMED.items())
def test_an_option_that_is_not_understood_is_named(text: str, problem: str) -> None:
    assert problem in parse_slack(f"fix {text}").problem


def test_a_text_is_no_option_after_a_single_dash_or_a_space() -> None:
    for text in ("-v is ignored", "— the refund", "a -repo of ours", "-repository it"):
        assert parse_slack(f"fix {text}").request == JobRequest(text, "fix")


@cases(
    "text",
    [
        "sent the mail to my phone",
        "get Outlook working",
        "a\n--\n1\n2\n3\n4\n5\n6\n7",
        f"a\n--\n{'b' * 81}",
        "use\n---\nit",
        "Sent from my iPhone",
    ],
)
def test_a_text_is_no_signature(text: str) -> None:
    lines = text.split("\n")
    assert without_signature(lines) == lines


def test_the_table_has_200_spellings() -> None:
    rows = [*OPTIONS, *NAMED, *(text for texts in DECISIONS.values() for text in texts)]
    assert len({*rows, *SIGNATURES}) >= 200


@given(st.text(max_size=80))
def test_plain_text_has_a_character_for_each(text: str) -> None:
    assert len(plain(text)) == len(text)
    assert plain(plain(text)) == plain(text)
