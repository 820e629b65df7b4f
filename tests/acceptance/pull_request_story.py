"""From a label in Trello to the merge on a forge, with four processes that are killed on the way.

A label makes the job, its questions are answered in Slack, and the forge reports a failed check, a
review, an approval and the merge. Each webhook arrives three times, out of order. Between two steps
the worker and the bots of Slack, Trello and the forge are all killed with SIGKILL.
"""

from __future__ import annotations

from typing import Any, Final

from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman_bots.slack import ids
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.waits import until
from tests.acceptance.story_processes import (
    FILE,
    SECONDS,
    WORDS,
    Json,
    Story,
    command_of,
    shown,
)
from tests.core.worker.agent_jobs import git

BRANCH: Final = "draftsman/D-1"
CHANGE: Final = f"{FILE}:1=and then?"
"""The comment of a request for changes, on a line of the work."""


async def label_to_merge(story: Story, owner: Actor) -> None:
    """Go from the label to the card in Done."""
    world = story.world
    card = await _begin(story, owner)
    first = await story.work(WORDS[0])
    await story.pull_recorded()
    world.checks.append({"name": "ci", "state": "failed", "commit": first})
    world.talk.logs[1] = "E  assert 1 == 2\n"
    story.next_word(WORDS[1])
    run = {"name": "ci", "head_sha": first, "conclusion": "failure"}
    await story.send(("check_run", {"action": "completed", "check_run": run}))

    await story.asked(command_of(WORDS[1]), f"{ids.ANSWER}:1")
    world.checks[0] |= {"state": "passed", "commit": "*"}
    second = await story.work(WORDS[1])
    await story.asked(f"{second[:12]}", ids.APPROVE)

    review, [line] = world.talk.review(1, "ben", "changes_requested", "No", ran_txt="And three?")
    about: Json = {"pull_request": {"number": 1}}
    story.next_word(WORDS[2])
    body = story.payloads.review(review, upper=False)
    await story.send(
        ("pull_request_review", about | {"action": "submitted", "review": body}),
        (
            "pull_request_review_comment",
            about | {"action": "created", "comment": story.payloads.comment(line)},
        ),
    )
    third = await story.work(WORDS[2])
    approval, _ = world.talk.review(1, "ben", "approved")
    body = story.payloads.review(approval, upper=False)
    await story.send(
        ("pull_request_review", about | {"action": "submitted", "review": body}),
        ("push", {"ref": "refs/heads/draftsman/D-1", "after": third}),
    )
    assert world.head("main") not in (first, second, third), "not merged without an approval"
    await story.answer(story.ben, f"{third[:12]}", ids.APPROVE)
    await story.until(lambda: world.pulls[0].state == "merged", "the merge")
    await _merged(story, card, third)
    await check_end(story, (first, second, third), line)


async def changes_to_merge(story: Story, owner: Actor) -> None:
    """Go from the label to the merge of work whose approver first requests changes, on the card."""
    world = story.world
    card = await _begin(story, owner, policy={"paths": [{"path": FILE, "effect": "ask"}]})
    approval = f"Publish {BRANCH}?"
    await story.answer(story.anna, command_of(WORDS[0]), f"{ids.ANSWER}:1")
    await story.asked_on_card(card, "D-1/2")
    story.next_word(WORDS[1])
    await story.comment(card, f"request-changes\n{CHANGE}")
    await story.answer(story.anna, command_of(WORDS[1]), f"{ids.ANSWER}:1")
    await story.asked_on_card(card, "D-1/4")
    assert world.head(BRANCH) is None, "nothing is published without an approval"
    world.checks.append({"name": "ci", "state": "passed", "commit": "*"})
    await story.comment(card, "/approve D-1/4")
    await story.pull_recorded()
    head = world.head(BRANCH)
    assert head is not None
    await story.strike()
    await story.answer(story.ben, f"{head[:12]}", ids.APPROVE)
    await story.until(lambda: world.pulls[0].state == "merged", "the merge")
    await _merged(story, card, head)
    await story.settled()
    await story.stop()
    lines = git("show", f"main:{FILE}", cwd=world.repository).split()
    assert lines == list(WORDS[:2]), "each allowed call was made once"
    assert git("log", "--format=%H", "main", cwd=world.repository).split()[0] == head
    questions, answers = await story.rt.questions.of_job(1)
    decided = [item.outcome for item in questions if item.text.startswith(approval)]
    assert decided == ["changes_requested", "approved"]
    assert [item.question for item in answers if item.accepted] == [1, 2, 3, 4]
    [message] = await story.rt.messages.of_job(1)
    assert (message.text, message.sender) == (CHANGE.replace("=", ": "), "ben")
    assert message.delivered_at is not None
    [job] = await story.jobs("run_agent")
    assert job.status == Status.COMPLETED
    assert story.services.slack.complaints == []
    assert not any((await story.rt.read_model.invariants()).values())


async def _begin(story: Story, owner: Actor, **fields: Any) -> str:
    """Start everything and label a card; return the card."""
    trello = story.services.trello
    await story.set_up(owner, **fields)
    await story.start()

    async def begun() -> bool:
        return await boards_of(story.rt).cursor(story.board) is not None

    await until(begun, "the first look at the board", SECONDS)
    await story.until(lambda: bool(trello.world.webhooks), "the webhook of the board")
    await story.strike()
    story.next_word(WORDS[0])
    card = await story.label_card()
    await story.strike()
    return card


async def _merged(story: Story, card: str, head: str) -> None:
    """Send the webhook of the merge; wait for the card in Done, and for the end of the branch."""
    world = story.world
    trello = story.services.trello
    merged = {"number": 1, "merged": True, "state": "closed", "merged_at": "2026-01-02T03:04:05Z"}
    merged |= {"head": {"sha": head}, "merged_by": {"login": world.login}}
    await story.send(("pull_request", {"action": "closed", "pull_request": merged}))
    await story.until(lambda: trello.card_now(card)["idList"] == story.done, "the card in Done")
    await story.until(lambda: world.head(BRANCH) is None, "the branch to be deleted")


async def check_end(story: Story, heads: tuple[str, str, str], line: Any) -> None:
    """Check that everything happened once."""
    world = story.world
    answered = f"Done in {heads[2]}"
    own = [item for item in world.talk.comments if item.author == world.login]
    await story.until(lambda: line.resolved, "the thread to be resolved")
    await story.settled()
    await story.stop()
    lines = git("show", f"main:{FILE}", cwd=world.repository).split()
    assert lines == list(WORDS), "each allowed call was made once"
    log = git("log", "--format=%H", "main", cwd=world.repository).split()
    assert log[:3] == list(reversed(heads)), "a commit for each step"
    assert len(world.pulls) == 1
    assert f"head={heads[2]} -->" in world.pulls[0].body
    own = [item for item in world.talk.comments if item.author == world.login]
    written = [item for item in own if item.body.startswith(answered)]
    assert len(written) == 2, "the review and its thread are answered, once each"
    work = await story.jobs("run_agent")
    assert [job.status for job in work] == [Status.COMPLETED] * 3
    merges = [job.status for job in await story.jobs("merge_pull_request")]
    assert merges[-1] == Status.COMPLETED
    assert Status.COMPLETED not in merges[:-1], "the merge of an earlier commit is over"
    counts = await (
        await story.conn.execute(
            "SELECT kind::text, count(*) FROM draftsman.forge_events GROUP BY kind"
        )
    ).fetchall()
    kinds = {str(row[0]): int(row[1]) for row in counts}
    assert kinds["review"] == 2, kinds
    assert (kinds["review_thread"], kinds["check_failed"], kinds["merged"]) == (1, 1, 1), kinds
    texts = [shown(message) for message in story.messages()]
    asked = [text for text in texts if "to run a command?" in text]
    for word in WORDS:
        assert sum(f"$ {command_of(word)}" in text for text in asked) == 1, word
    assert not [text for text in texts if f"{ids.ANSWER}:" in text or ids.APPROVE in text]
    assert story.services.slack.complaints == []
    assert not any((await story.rt.read_model.invariants()).values())
