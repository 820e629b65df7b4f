"""Commands in comments on jobs, and requests after a question was answered."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

from draftsman.database.database import Connection
from draftsman.forges.follow_up_jobs.service import FollowUpSweep
from draftsman.forges.forge_event import EventKind
from draftsman.jobs.job import Job, Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_bots.forges.events import classify
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.people import People
from tests.bots.forges.issues import LABEL, Issue, comment
from tests.support.cases import cases


async def requested(issue: Issue, rt: Runtime) -> Job:
    """Return the job of the issue's label."""
    await issue.on(LABEL)
    return await rt.read_model.job((await rt.read_model.jobs())[0].number)


async def test_comments_steer_the_job_of_the_issue(
    issue: Issue, rt: Runtime, make: Factory
) -> None:
    """Each comment once, in the name of its author, whose rights count."""
    job = await requested(issue, rt)
    name = job.name

    async def state() -> tuple[bool, str]:
        return (await rt.read_model.why(job.number)).paused, (
            await rt.read_model.job(job.number)
        ).status

    told = comment("/draftsman tell use the v2 API", "anna", 30)
    assert [await issue.on(told) for _ in range(2)] == ["answered"] * 2
    assert [item.text for item in await rt.messages.of_job(job.number)] == ["use the v2 API"]
    for number, (text, author, outcome, paused) in enumerate(
        [
            (f"/pause {name} the API is down", "mallory", "refused", False),
            (f"/draftsman pause {name} the API is down", "ben", "refused", False),
            ("/draftsman pause", "anna", "refused", False),
            ("/pause the API is down", "anna", "ignored", False),
            (f"@draftsman pause {name} the API is down", "anna", "answered", True),
            (f"/pause {name} again", "anna", "refused", True),
            ("/draftsman resume", "anna", "answered", False),
            ("/draftsman pause D-99 x", "anna", "refused", False),
        ],
        40,
    ):
        event = comment(text, author, number)
        assert [await issue.on(event) for _ in range(2)] == [outcome] * 2, text
        assert (await state())[0] is paused, text
    stop = comment(f"/draftsman cancel {name} not needed", "anna", 60)
    assert [await issue.on(stop) for _ in range(2)] == ["answered"] * 2
    assert (await state())[1] == "canceled"
    assert await issue.on(comment(f"/draftsman cancel {name}", "anna", 61)) == "answered"
    texts = await issue.delivered(job.number)
    for part in (
        f"{name}: anna: Message 1 sent to {name}: the agent gets it with its next run.",
        f"{name} was paused by acme:anna: the API is down",
        "was canceled by anna: not needed",
        "a pause needs a reason",
        "draftsman people set NAME --account forge:acme:mallory",
        "ben: ben may not pause or resume jobs",
        "D-99",
    ):
        assert any(part in text for text in texts), (part, texts)


async def test_comments_command_no_job_of_another_repository(
    issue: Issue, rt: Runtime, make: Factory, people: People
) -> None:
    """The secret of a repository's webhook could be used for a comment in any name."""
    forge = issue.place.fake.world.base
    shop, elsewhere, pay, over_ssh = [
        await make.queued(actor=people.anna, repo=source)
        for source in (
            f"{forge}/acme/shop",
            "https://forge.example/acme/pay",
            f"{forge}/Acme/Pay",
            f"git@{urlsplit(forge).hostname}:acme/pay.git",
        )
    ]
    assert await issue.on(comment(f"/draftsman pause D-{over_ssh} slow", "anna", 79)) == "answered"
    for number, verb in enumerate(("pause", "cancel"), 80):
        for other in (shop, elsewhere):
            text = f"/draftsman {verb} D-{other} it is slow"
            assert await issue.on(comment(text, "anna", number + other)) == "refused", verb
            assert await issue.on(comment(text, "anna", number + other)) == "refused", "again"
        text = f"/draftsman {verb} D-{pay} it is slow"
        assert await issue.on(comment(text, "anna", number + 10)) == "answered", verb
    assert not (await rt.read_model.why(shop)).paused
    assert (await rt.read_model.job(shop)).status is Status.QUEUED
    assert (await rt.read_model.job(pay)).status is Status.CANCELED
    texts = [note.body for note in issue.place.fake.world.comments()]
    for other in (shop, elsewhere):
        assert any(f"D-{other} is not a job of acme/pay" in text for text in texts)


async def test_a_mention_after_the_answer_is_another_request(
    issue: Issue, rt: Runtime, make: Factory
) -> None:
    work = await make.asked(QUESTION, notify=(issue.place.target,))
    name = f"D-{work.number}/1"
    await issue.delivered(work.number)
    assert await issue.on(comment("red", "ben", 70)) == "answered"
    question = await rt.questions.get(work.number, 1)
    closed = question.answered_at
    assert closed is not None
    late = comment("@draftsman the darker of both", "anna", 71, at=question.asked_at)
    assert await issue.on(late) == "refused", "written before the answer"
    assert await issue.on(comment(f"@draftsman {name} blue", "anna", 72)) == "refused"
    assert await issue.on(comment("@draftsman blue", "anna", 73)) == "refused", "a choice"
    new = comment("@draftsman fix the tax, too", "anna", 74, at=closed + timedelta(seconds=1))
    assert [await issue.on(new) for _ in range(2)] == ["submitted"] * 2
    newest = (await rt.read_model.jobs())[0]
    assert newest.number > work.number
    assert "fix the tax, too" in str((await rt.read_model.job(newest.number)).agent_request.text)


async def test_a_mention_on_the_issue_follows_up_on_its_open_pull_request(
    issue: Issue, rt: Runtime, make: Factory, conn: Connection
) -> None:
    """And so does `/draftsman tell` on the pull request itself, both as messages of the person."""
    number = await make.job_in(Status.COMPLETED, type="run_agent", notify=(issue.place.target,))
    await conn.execute(
        "INSERT INTO draftsman.pull_requests"
        " (root, forge, project, number, url, branch, base, head)"
        " VALUES (%s, 'acme', 'acme/pay', 9, 'http://pull', 'b', 'main', 'h')",
        (number,),
    )
    wish = comment("@draftsman fix the tax, too", "ben", 80)
    assert [await issue.on(wish) for _ in range(2)] == ["answered"] * 2
    tell = comment("/draftsman tell use v2", "ben", 81, number=9, kind=EventKind.ANSWER)
    issue.place.fake.world.open("b", "main", "x", "y", False, "bot").number = 9
    assert await issue.on(tell) == "answered"
    tables = {"acme": issue.rt.settings.forges["acme"].model_copy(update={"follow_up_delay": 0})}
    await FollowUpSweep(rt.db, rt.policy, tables).sweep(LeaderTerm())
    (newest, _) = await rt.read_model.jobs()
    messages = await rt.messages.of_job(newest.number)
    assert [(item.text, item.sender) for item in messages] == [
        ("fix the tax, too", "ben"),
        ("use v2", "ben"),
    ]
    other = comment("/draftsman tell it", "ben", 82, number=9)
    assert await issue.on(other) == "refused", "an issue of GitLab may have the same number"
    assert any("a follow-up on http://pull" in text for text in await issue.delivered(number))


@cases(
    ("text", "kind"),
    [
        ("/draftsman pause", "answer"),
        ("/draftsman tell D-7 use v2", "answer"),
        ("/cancel D-7", "answer"),
        ("/cancel", "comment"),
        ("/draftsman use v2", "comment"),
        ("/draftsman cancel the refund twice", "comment"),
    ],
)
def test_commands_on_a_pull_request_are_no_feedback(text: str, kind: str) -> None:
    event = comment(text, kind=EventKind.COMMENT)
    assert classify(event, "draftsman").kind == kind


async def test_help_and_commands_of_slack_get_a_reply_if_draftsman_is_addressed(
    issue: Issue, rt: Runtime, make: Factory
) -> None:
    outcomes = {
        "/draftsman help": "answered",
        "@draftsman list": "answered",
        "/help": "ignored",
        "/status": "ignored",
        "/fix it": "ignored",
    }
    for number, (text, outcome) in enumerate(outcomes.items(), 90):
        event = comment(text, "anna", number)
        assert [await issue.on(event) for _ in range(2)] == [outcome] * 2, text
    commands, elsewhere = [note.body for note in issue.place.fake.world.comments()]
    assert "/draftsman tell D-142 TEXT: Send a message" in commands
    assert "/answer [D-142/1] TEXT: Answer" in commands
    assert "list is a command of Slack only" in elsewhere
    assert await rt.read_model.jobs() == []


async def test_a_word_that_a_question_accepts_is_no_command(
    issue: Issue, rt: Runtime, make: Factory
) -> None:
    verbs = QuestionSpec(key="what", text="What now?", choices=("retry", "cancel"))
    work = await make.asked(verbs, notify=(issue.place.target,))
    await issue.delivered(work.number)
    assert await issue.on(comment("@draftsman cancel", "ben", 100)) == "answered"
    assert (await rt.questions.get(work.number, 1)).resolution is not None
    assert (await rt.read_model.job(work.number)).status is not Status.CANCELED
    words = QuestionSpec(key="how", text="How?", freeform=True)
    other = await make.asked(words, notify=(issue.place.target,))
    await issue.delivered(other.number)
    assert await issue.on(comment("@draftsman fix the parser first", "ben", 102)) == "answered"
    resolution = (await rt.questions.get(other.number, 1)).resolution or {}
    assert resolution["text"] == "fix the parser first"


async def test_a_command_for_one_of_several_jobs_changes_none(
    issue: Issue, rt: Runtime, make: Factory, people: People
) -> None:
    jobs = [await make.queued(actor=people.anna, notify=(issue.place.target,)) for _ in range(2)]
    assert await issue.on(comment("/draftsman cancel", "anna", 101)) == "refused"
    assert {(await rt.read_model.job(job)).status for job in jobs} == {Status.QUEUED}
    asked = (await issue.delivered(jobs[1]))[-1]
    assert f"Which job is meant: D-{jobs[1]} or D-{jobs[0]}?" in asked


async def test_a_request_in_a_comment_has_a_mode_and_options(
    issue: Issue, rt: Runtime, make: Factory
) -> None:
    text = "/draftsman investigate the tax --ref=v1"
    assert await issue.on(comment(text, "anna", 95)) == "submitted"
    (summary,) = await rt.read_model.jobs()
    job = await rt.read_model.job(summary.number)
    assert (job.agent_request.mode, job.payload["repo"]["ref"]) == ("investigate", "v1")
    assert "investigate the tax" in str(job.agent_request.text)
    assert "--ref" not in str(job.agent_request.text)
    for number, option in enumerate(("--repo=pay", "--mode=deploy"), 96):
        text = f"@draftsman fix {option} the tax"
        assert await issue.on(comment(text, "anna", number)) == "refused"
    texts = [note.body for note in issue.place.fake.world.comments()]
    assert any("the repository is that of the issue" in text for text in texts)
    assert any("--mode must be fix or investigate" in text for text in texts)
