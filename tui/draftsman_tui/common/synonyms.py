"""Other words for commands and options, by which the palette and `did you mean` find them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from draftsman.formats.near_names import near_names as similar_names

SYNONYMS: Final[Mapping[str, str]] = {
    "answer": "reply respond",
    "approve": "accept allow confirm ok yes lgtm",
    "ack": "acknowledge claim take mine",
    "apply": "patch pull",
    "artifacts": "files results downloads",
    "boards": "trello",
    "browse": "url web link browser pr",
    "budgets": "money spending caps",
    "cancel": "stop kill abort halt terminate end delete remove",
    "cancel-force": "kill stop abort terminate",
    "cancel-group": "stop kill abort",
    "cancel-tree": "stop kill abort",
    "checkout": "branch switch",
    "clear": "reset unmark",
    "columns": "fields hide",
    "config": "settings configuration options",
    "copy": "yank clipboard",
    "copy-job": "clone duplicate",
    "costs": "money spending tokens price",
    "dashboard": "tui ui gui top",
    "dead": "failures dlq",
    "delegate": "assign reassign forward handover",
    "deliveries": "messages notifications outbox",
    "deny": "reject refuse decline disapprove no",
    "diff": "changes patch",
    "doctor": "check health diagnose problems",
    "events": "history audit timeline",
    "extend": "postpone deadline longer later",
    "figures": "statistics charts metrics",
    "filter": "search find where grep",
    "find": "search grep",
    "follow": "tail",
    "forget": "delete remove unregister",
    "group-by": "sections",
    "help": "keys shortcuts bindings manual usage",
    "inbox": "questions approvals asks todo",
    "job": "show view details describe inspect status info get",
    "jobs": "list ls ps home all status tasks",
    "limits": "concurrency rates throttle",
    "log": "logs output tail stdout activity transcript",
    "logs": "log output tail stdout activity transcript",
    "mark": "select check",
    "mark-range": "select",
    "merge": "ship land",
    "move": "reorder top bottom front back",
    "new": "submit create add start run enqueue",
    "open": "show view enter browser url",
    "pause": "stop hold suspend freeze halt",
    "pause-job": "pause stop hold suspend freeze halt",
    "pause-schedule": "stop hold suspend disable resume",
    "people": "users members roles accounts",
    "preview": "details side",
    "priority": "urgent nice important",
    "queues": "lanes backlog",
    "questions": "inbox approvals asks todo",
    "quit": "exit close bye logout",
    "redeliver": "resend",
    "redeliver-dead": "resend",
    "redeliver-job": "resend",
    "refresh": "reload update",
    "repos": "repositories projects",
    "request-changes": "revise rework change improve",
    "resume": "unpause continue unfreeze",
    "resume-job": "unpause continue unfreeze",
    "retry": "rerun restart again redo repeat",
    "retry-all": "rerun restart redo repeat",
    "review": "next approvals triage",
    "rules": "permissions allowlist",
    "run": "start exec execute",
    "schedules": "cron recurring timers",
    "show": "view details describe inspect status info get",
    "snooze": "mute later silence remind",
    "sort": "order",
    "stats": "statistics charts metrics throughput counts",
    "submit": "new create add start enqueue",
    "sweep": "maintenance cleanup",
    "tell": "message say chat steer comment send",
    "templates": "presets recipes",
    "theme": "colors colours dark light",
    "types": "handlers functions",
    "undo": "revert takeback",
    "unpause": "resume continue",
    "up": "start serve daemon",
    "views": "bookmarks saved favorites",
    "wait": "watch follow block",
    "why": "blocked stuck reason explain",
    "workers": "processes nodes agents",
}
"""Words, separated by spaces, by the name of a command of the dashboard or the command line."""


def synonyms(name: str) -> Sequence[str]:
    """Return the other words for a command."""
    return SYNONYMS.get(name, "").split()


OPTION_WORDS: Final[Mapping[str, str]] = {
    "after": "in",
    "author": "by",
    "comment": "reason",
    "comments": "reason",
    "delay": "in",
    "desc": "sort",
    "fields": "where",
    "filter": "where",
    "format": "json",
    "message": "reason",
    "note": "reason",
    "order": "sort",
    "output": "json",
    "person": "by",
    "project": "repo",
    "requester": "by",
    "start": "at",
    "state": "status",
    "submitter": "by",
    "tags": "tag",
    "user": "by",
    "who": "by",
}
"""Other words for options, without the dashes, and what they are called here."""


def near_options(typed: str, names: Collection[str], most: int = 3) -> list[str]:
    """Return the options that a mistyped one may mean; the dashes make none of them similar."""
    word = typed.lstrip("-").casefold()
    by_word = {name.lstrip("-"): name for name in names if name.startswith("--")}
    meant = [OPTION_WORDS[word]] if OPTION_WORDS.get(word) in by_word else []
    near = dict.fromkeys([*meant, *similar_names(word, by_word, most)])
    return [by_word[name] for name in near][:most]


def near_names(typed: str, names: Collection[str], most: int = 3) -> list[str]:
    """Return the names that a mistyped name may mean: of which it is another word, or similar."""
    word = typed.casefold()
    meant = [name for name in names if word in synonyms(name)]
    return list(dict.fromkeys([*meant, *similar_names(word, names, most)]))[:most]
