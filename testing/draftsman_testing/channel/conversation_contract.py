"""The contract of every chat for what people write: requests, answers, decisions and changes.

class TestMail(ConversationContract):
    @pytest.fixture
    async def place(self): yield MailPlace(…)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Final, Protocol

import pytest

from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.people.policy import Person
from draftsman.questions.question import OnDeny, Question, QuestionKind, QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.channel.place import Place
from draftsman_testing.factories import QUESTION, REVIEW, Factory
from draftsman_testing.outbox import wait_until_delivered
from draftsman_testing.people import People
from draftsman_testing.waits import until

REQUEST: Final = "Refunds are paid twice"
REASON: Final = "not on a Friday"
GATE: Final = QuestionSpec(
    key="gate",
    kind=QuestionKind.APPROVAL,
    text="Deploy?",
    approvers=("carol",),
    on_deny=OnDeny.CONTINUE,
)
AGAIN: Final = GATE.model_copy(update={"key": "again"})


class TalkingPlace(Place, Protocol):
    """A place where people write, and the bot that reads it."""

    accounts: Mapping[str, str]
    """The accounts of anna, who requests; ben, who answers; and carol, who approves.

    The account of mallory is nobody's.
    """
    targets: tuple[str, ...]
    """The targets of jobs: the place, or each person's own where a message has a single reader."""
    takes_requests: bool
    anyone_requests: bool
    """Whether a request counts from any account that may write there, as on a board."""
    reports_changes: bool
    """Whether the service tells of edits and deletions."""

    def running(self, rt: Runtime) -> AbstractAsyncContextManager[None]:
        """Run the bot of the channel, which also sends the messages of jobs."""
        ...

    async def request(self, person: str, text: str) -> None:
        """Let a person request a job."""
        ...

    async def say(self, person: str, text: str) -> str:
        """Let a person write where the newest job is shown; return the key of the text."""
        ...

    async def edit(self, key: str, text: str) -> None:
        """Let the author edit a text."""
        ...

    async def delete(self, key: str) -> None:
        """Let the author delete a text."""
        ...

    async def repeat(self, key: str) -> None:
        """Report a text once more, as a service does that had no reply."""
        ...

    def told(self) -> Sequence[str]:
        """Return all texts of the bot, also those that only one person sees."""
        ...


class Talk:
    """A conversation: what people say in a place, and what they are told."""

    def __init__(self, place: TalkingPlace, rt: Runtime, make: Factory) -> None:
        self.place = place
        self.rt = rt
        self.make = make
        self.transcript: list[str] = []
        """What people wrote and what they were told of it, in the order of a story."""

    async def says(self, person: str, text: str) -> None:
        """Let a person write where the newest job is shown."""
        self.transcript.append(f"{person}: {text}")
        await self.place.say(person, text)

    async def requests(self, person: str, text: str) -> None:
        """Let a person request a job."""
        self.transcript.append(f"{person}: {text}")
        await self.place.request(person, text)

    async def asked(self, spec: QuestionSpec = QUESTION, job: int | None = None) -> Question:
        """Ask a question of a new or a running job, and show it in the place."""
        if job is None:
            job = await self.make.queued(notify=self.place.targets)
        work = await self.make.running(job)
        await self.rt.asking.ask(work.lease, spec)
        await self.delivered(job)
        questions, _ = await self.rt.questions.of_job(job)
        return questions[-1]

    async def delivered(self, job: int) -> None:
        """Wait until the messages of a job are in the place."""
        await wait_until_delivered(self.rt, job, self.place.channel)

    async def hears(self, *words: str) -> str:
        """Wait until a text of the bot has all these words; return the last of them."""

        async def look() -> bool:
            return bool(self._texts(words))

        try:
            await until(look, f"the words {words}")
        except AssertionError as error:
            error.add_note("\n".join(self.place.told()))
            raise
        text = self._texts(words)[-1]
        self.transcript.append(text)
        return text

    def _texts(self, words: Sequence[str]) -> list[str]:
        texts = (text.replace("\\", "") for text in self.place.told())
        return [text for text in texts if all(word in text for word in words)]

    async def closed(self, question: Question) -> tuple[str | None, list[str]]:
        """Wait until a question is closed; return its answer and their authors."""
        current = question

        async def look() -> bool:
            nonlocal current
            current = await self.rt.questions.get(question.job, question.ordinal)
            return current.status is not QuestionStatus.OPEN

        await until(look, f"an answer to {question.name}")
        resolution = current.resolution or {}
        answer = resolution.get("value") or resolution.get("text") or resolution["outcome"]
        return answer, list(resolution.get("by", ()))

    async def accepted(self, question: Question) -> list[str]:
        """Return the author of each accepted answer."""
        _, answers = await self.rt.questions.of_job(question.job)
        return [answer.voter for answer in answers if answer.accepted]


async def play(talk: Talk, people: People) -> int:
    """Play the story of a job in a place, from the request to the result; return its number."""
    place = talk.place
    if place.takes_requests:
        if not place.anyone_requests:
            await talk.requests("mallory", REQUEST)
            await talk.hears("not")
        await talk.requests("anna", REQUEST)
        job = await _requested(talk)
    else:
        job = await talk.make.queued(actor=people.anna, notify=place.targets)
    question = await talk.asked(job=job)
    await talk.hears(question.name, question.text)
    await talk.says("ben", "red")
    assert await talk.closed(question) == ("red", ["ben"])
    await talk.hears(f"{question.name} was answered by ben: red")
    gate = await talk.asked(GATE, job)
    await talk.hears(gate.name, gate.text)
    await talk.says("ben", "approve")
    await talk.hears("Your answer was not accepted", "may not approve")
    await talk.says("carol", f"deny {REASON}")
    assert await talk.closed(gate) == ("denied", ["carol"])
    await talk.hears(f"{gate.name} was denied by carol: {REASON}")
    again = await talk.asked(AGAIN, job)
    await talk.says("carol", "approve")
    assert await talk.closed(again) == ("approved", ["carol"])
    await talk.hears(f"{again.name} was approved by carol")
    work = await talk.make.running(job)
    await talk.rt.settlement.outcome(work, Done({"summary": "Refunds are paid once."}))
    await talk.hears("Refunds are paid once.")
    await talk.delivered(job)
    return job


async def _requested(talk: Talk) -> int:
    async def look() -> bool:
        return bool(await talk.rt.read_model.jobs())

    await until(look, "the requested job")
    (job,) = await talk.rt.read_model.jobs()
    return job.number


def _accounts(person: Person, channel: str, accounts: Mapping[str, str]) -> dict[str, str]:
    ids = {other: id for other, id in person.ids.items() if other != channel}
    return ids | ({channel: accounts[person.name]} if person.name in accounts else {})


class ConversationContract:
    """Tests of a conversation. A class inherits them, and has a fixture `place`."""

    @pytest.fixture
    async def talk(self, place: TalkingPlace, rt: Runtime, make: Factory) -> AsyncIterator[Talk]:
        """Run the bot, for people with accounts in the place."""
        channel = place.channel.name
        rt.policy.people = {
            name: replace(person, ids=_accounts(person, channel, place.accounts))
            for name, person in rt.policy.people.items()
        }
        async with place.running(rt):
            yield Talk(place, rt, make)

    async def test_the_story_of_a_job(self, talk: Talk, people: People, rt: Runtime) -> None:
        number = await play(talk, people)
        (job,) = await rt.read_model.jobs()
        assert (job.number, job.status) == (number, Status.COMPLETED)
        if not talk.place.anyone_requests:
            assert (await rt.read_model.job(number)).invoker_id == "anna"
        self.check_transcript("\n\n".join(talk.transcript))

    def check_transcript(self, transcript: str) -> None:
        """Compare what was said in the story, if a class wants to."""

    async def test_a_repeated_text_counts_once(self, talk: Talk) -> None:
        question = await talk.asked(
            GATE.model_copy(update={"quorum": 2, "approvers": ("carol", "dave")})
        )
        key = await talk.place.say("carol", "approve")
        await talk.hears("recorded: 1 of 2 approvals")
        await talk.place.repeat(key)
        await talk.place.say("carol", "approve")
        await talk.hears("your approval is already recorded, 1 of 2")
        assert await talk.accepted(question) == ["carol"]
        told = [text for text in talk.place.told() if "1 of 2" in text]
        assert len(told) == 2

    async def test_changes_are_requested_with_what_to_change(self, talk: Talk) -> None:
        first = await talk.asked(REVIEW)
        await talk.hears(first.name, "request")
        await talk.place.say("ben", "request changes no")
        await talk.hears("not accepted", "may not")
        await talk.place.say("carol", "Request changes: use the v2 API\nand add a test")
        assert await talk.closed(first) == ("changes_requested", ["carol"])
        await talk.hears(f"{first.name}: changes were requested by carol: use the v2 API")
        [message] = await talk.rt.messages.of_job(first.job)
        assert message.text == "use the v2 API\nand add a test"
        again = await talk.asked(REVIEW, first.job)
        await talk.place.say("carol", f"/request-changes {again.name} rename it")
        assert await talk.closed(again) == ("changes_requested", ["carol"])
        await talk.hears(f"{again.name}: changes were requested by carol: rename it")

    async def test_an_approval_that_takes_no_changes_says_so(self, talk: Talk) -> None:
        gate = await talk.asked(GATE)
        await talk.place.say("carol", "request changes use the v2 API")
        await talk.hears(gate.name, "takes no requests for changes")
        assert await talk.accepted(gate) == []
        assert not any("request" in text for text in talk.place.told() if GATE.text in text)

    async def test_a_late_text_gets_the_reason(self, talk: Talk) -> None:
        question = await talk.asked()
        await talk.make.answer(question.job, "blue")
        await talk.delivered(question.job)
        await talk.place.say("ben", "red")
        await talk.hears(f"{question.name} was already answered by", "not accepted")
        assert await talk.closed(question) == ("blue", ["root"])

    async def test_an_accepted_answer_stays_whatever_happens_to_its_text(self, talk: Talk) -> None:
        question = await talk.asked()
        key = await talk.place.say("ben", "red")
        assert await talk.closed(question) == ("red", ["ben"])
        await talk.place.edit(key, "blue")
        await talk.place.delete(key)
        await talk.place.say("carol", "blue")
        await talk.hears("Your answer was not accepted", "may not answer")
        assert await talk.closed(question) == ("red", ["ben"])
        assert await talk.accepted(question) == ["ben"]
        if talk.place.reports_changes:
            events = [event.kind for event in await talk.rt.read_model.job_events(question.job)]
            assert [events.count(f"answer_{change}") for change in ("edited", "deleted")] == [1, 1]

    async def test_an_account_of_nobody_answers_nothing(self, talk: Talk) -> None:
        question = await talk.asked()
        await talk.place.say("mallory", f"/answer {question.name} red")
        await talk.hears("not accepted")
        await talk.place.say("ben", "blue")
        assert await talk.closed(question) == ("blue", ["ben"])

    async def test_a_mistyped_choice_gets_the_choices(self, talk: Talk) -> None:
        question = await talk.asked()
        await talk.place.say("ben", "bleu")
        await talk.hears("'bleu' is not a choice; choose: 1 red, 2 blue")
        assert await talk.accepted(question) == []

    async def test_a_number_beyond_the_choices_is_no_text_unless_it_is_quoted(
        self, talk: Talk
    ) -> None:
        question = await talk.asked(QUESTION.model_copy(update={"freeform": True}))
        await talk.place.say("ben", "7")
        await talk.hears("there is no choice 7; choose: 1 red, 2 blue", "with the quotes")
        assert await talk.accepted(question) == []
        await talk.place.say("ben", '"7"')
        assert await talk.closed(question) == ("7", ["ben"])

    async def test_a_text_that_may_answer_two_questions_answers_none(self, talk: Talk) -> None:
        other = QUESTION.model_copy(update={"key": "other", "text": "Which other?"})
        work = await talk.make.asked_at_once(QUESTION, other, notify=talk.place.targets)
        await talk.delivered(work.number)
        await talk.place.say("ben", "red")
        await talk.hears("Which question does this answer")
        questions, answers = await talk.rt.questions.of_job(work.number)
        assert [question.status for question in questions] == [QuestionStatus.OPEN] * 2
        assert answers == []
