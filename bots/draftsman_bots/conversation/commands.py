"""Commands that people write in chats: their names, arguments, rights and help. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from draftsman.actions import changes, jobs, people, questions, requests, schedules
from draftsman.questions.choice_matching import is_nearly
from draftsman.schedules.phrases import FIRST_WORDS

if TYPE_CHECKING:
    from draftsman.actions.action import Action


class Surface(StrEnum):
    """Kinds of channels in which people write commands."""

    SLACK = "Slack"
    FORGE = "forges"
    REPLY = "replies"
    """Texts below messages, which answer and control a job: cards, and mails."""


class About(StrEnum):
    """What a command is about."""

    REQUEST = "request"
    """A new job."""
    JOB = "job"
    QUESTION = "question"
    NOTHING = "nothing"


class Access(StrEnum):
    """Accounts that may give a command; services check the roles of people."""

    EVERYBODY = "everybody"
    PERSON = "person"
    REQUESTER = "requester"
    """A person, in a channel that accepts requests if the chat limits these."""


EVERYWHERE: Final = frozenset(Surface)
SLACK_ONLY: Final = frozenset({Surface.SLACK})
REQUESTS_TAKEN: Final = frozenset({Surface.SLACK, Surface.FORGE})
"""Channels in which a text requests a job; a card requests one by its label."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it is about, its arguments after a name of that, its line in the help."""

    name: str
    about: About
    argument: str
    help: str
    access: Access = Access.REQUESTER
    surfaces: frozenset[Surface] = EVERYWHERE
    optional: bool = False
    """Whether it works without the name of a job or question everywhere."""
    aliases: tuple[str, ...] = ()
    action: Action[Any, ..., Any] | None = None
    """The action that it takes, on a job or a question."""
    ends_in: Action[Any, ..., Any] | None = None
    """The action of a command that has a way of its own, such as a request."""

    def usage(self, surface: Surface, call: str = "/draftsman") -> str:
        """Return how it is written in a channel: `/draftsman tell D-142 TEXT`.

        In comments, the place names the job and the question.
        """
        prefix = f"{call} "
        if surface is Surface.REPLY or (surface is Surface.FORGE and self.about is About.QUESTION):
            prefix = "/"
        name = {About.JOB: "D-142", About.QUESTION: "D-142/1"}.get(self.about, "")
        if name and (self.optional or prefix == "/"):
            name = f"[{name}]"
        return prefix + " ".join(filter(None, [self.name, name, self.argument]))


def of_action(action: Action[Any, ..., Any], surfaces: frozenset[Surface] = EVERYWHERE) -> Command:
    """Return the command that takes an action."""
    return Command(
        name=action.name,
        about=About(action.about),
        argument=action.takes.usage,
        help=action.help,
        surfaces=surfaces,
        action=action,
    )


DECLARED: Final = (
    Command(
        "fix",
        About.REQUEST,
        "TEXT",
        "Make the requested change.",
        surfaces=REQUESTS_TAKEN,
        ends_in=requests.submit,
    ),
    Command(
        "investigate",
        About.REQUEST,
        "TEXT",
        "Look and change nothing.",
        surfaces=REQUESTS_TAKEN,
        ends_in=requests.submit,
    ),
    Command(
        "status",
        About.JOB,
        "",
        "Show why a job waits, or list jobs.",
        surfaces=SLACK_ONLY,
        optional=True,
    ),
    Command("list", About.NOTHING, "", "List the newest jobs.", surfaces=SLACK_ONLY),
    Command("show", About.JOB, "", "Show a job and its questions.", surfaces=SLACK_ONLY),
    of_action(jobs.tell),
    of_action(jobs.pause),
    of_action(jobs.resume),
    of_action(jobs.cancel),
    of_action(jobs.retry, SLACK_ONLY),
    of_action(jobs.dismiss),
    of_action(jobs.undismiss),
    of_action(changes.merge),
    of_action(questions.answer),
    of_action(questions.approve),
    of_action(questions.request_changes),
    of_action(questions.deny),
    of_action(questions.acknowledge),
    of_action(questions.snooze),
    of_action(questions.delegate),
    Command("templates", About.NOTHING, "[TEXT]", "List templates and types.", surfaces=SLACK_ONLY),
    Command(
        "template",
        About.NOTHING,
        "NAME [PARAMETER=VALUE …]",
        "Open the form of a template or type, or submit its job.",
        surfaces=SLACK_ONLY,
        aliases=("run",),
        ends_in=schedules.run_template,
    ),
    Command(
        "every",
        About.REQUEST,
        "weekday at 9 TEXT",
        "Add a schedule; also `every 90m TEXT`, `tomorrow at 14:00 TEXT`, or `template NAME …` as"
        " TEXT.",
        surfaces=SLACK_ONLY,
        aliases=tuple(sorted(FIRST_WORDS - {"every"})),
        ends_in=schedules.add,
    ),
    Command("schedules", About.NOTHING, "[TEXT]", "List schedules.", surfaces=SLACK_ONLY),
    Command(
        "link",
        About.NOTHING,
        "",
        people.create_link_code.help,
        Access.EVERYBODY,
        SLACK_ONLY,
        ends_in=people.create_link_code,
    ),
    Command(
        "web",
        About.NOTHING,
        "",
        people.sign_in.help,
        Access.PERSON,
        SLACK_ONLY,
        ends_in=people.sign_in,
    ),
    Command("help", About.NOTHING, "", "Show this help.", Access.EVERYBODY),
)
COMMANDS: Final = {
    name: command for command in DECLARED for name in (command.name, *command.aliases)
}
"""Commands by name and alias."""


def help_lines(surface: Surface, call: str = "/draftsman") -> list[tuple[str, str]]:
    """Return usage and description of the commands of a channel."""
    return [
        (command.usage(surface, call), command.help)
        for command in DECLARED
        if surface in command.surfaces
    ]


def help_text(surface: Surface) -> str:
    """Return the help of a channel as plain lines."""
    return "\n".join(["commands:", *map(": ".join, help_lines(surface))])


def unavailable(command: Command, surface: Surface) -> str:
    """Return the reply to a command of another channel."""
    others = " and ".join(sorted(other for other in command.surfaces))
    return f"{command.name} is a command of {others} only; commands here: {command_names(surface)}."


def near_command(word: str, surface: Surface) -> str:
    """Return the command of a channel that a mistyped word nearly is; "" for none."""
    names = (command.name for command in DECLARED if surface in command.surfaces)
    return next((name for name in names if len(word) > 2 and is_nearly(word, name)), "")


def command_names(surface: Surface) -> str:
    """Return the names of the commands of a channel."""
    slash = "" if surface is Surface.SLACK else "/"
    return ", ".join(
        f"{slash}{command.name}" for command in DECLARED if surface in command.surfaces
    )
