"""Administration commands, and commands of the whole dashboard."""

from __future__ import annotations

from typing import Final

from draftsman.domain.people.policy import Verb
from draftsman_tui.dashboard.actions import admin_actions, navigation
from draftsman_tui.dashboard.command import REPOS, DashboardCommand

ADMIN_COMMANDS: Final = (
    DashboardCommand(
        "default",
        "Set or clear the default repository.",
        admin_actions.set_default_repo,
        "",
        "Administration",
        REPOS,
        Verb.REPOS,
    ),
    DashboardCommand(
        "map",
        "Map a label to the repository.",
        admin_actions.map_label,
        "",
        "Administration",
        REPOS,
        Verb.REPOS,
        takes="LABEL [//FOLDER]",
    ),
    DashboardCommand(
        "unmap",
        "Remove a label mapping of the repository.",
        admin_actions.unmap_label,
        "",
        "Administration",
        REPOS,
        Verb.REPOS,
        takes="LABEL",
    ),
    DashboardCommand(
        "forget",
        "Remove the repository, its label mappings and profiles.",
        admin_actions.remove_repo,
        "",
        "Administration",
        REPOS,
        Verb.REPOS,
    ),
    DashboardCommand(
        "unwatch",
        "Stop watching the board.",
        admin_actions.remove_board,
        "",
        "Administration",
        frozenset({"boards"}),
        Verb.BOARDS,
    ),
    DashboardCommand(
        "people",
        "List people, roles and linked chat accounts.",
        admin_actions.people,
        "",
        "Administration",
    ),
    DashboardCommand(
        "link",
        "Link a chat account to you, by its code.",
        admin_actions.link,
        "",
        "Administration",
        writes=True,
        takes="CODE",
    ),
    DashboardCommand(
        "unlink",
        "Unlink a chat account.",
        admin_actions.unlink,
        "",
        "Administration",
        None,
        Verb.UNLINK,
        takes="slack:ID",
    ),
    DashboardCommand(
        "sweep",
        "Run a maintenance sweep now.",
        admin_actions.sweep,
        "",
        "Administration",
        None,
        Verb.SWEEP,
        takes="NAME",
    ),
    DashboardCommand(
        "restore",
        "Restore an archived month of events.",
        admin_actions.restore,
        "",
        "Administration",
        None,
        Verb.RESTORE,
        takes="FILE",
    ),
    DashboardCommand(
        "command", "Type a command.", navigation.command, "colon", "General", footer=True
    ),
    DashboardCommand(
        "theme",
        "Switch to the next theme, or to the named theme.",
        navigation.theme,
        "t",
        "General",
        takes="dark|light|contrast|none",
    ),
    DashboardCommand(
        "help",
        "List all commands.",
        navigation.help,
        "question_mark",
        "General",
        footer=True,
    ),
    DashboardCommand(
        "processes",
        "Show the log of the processes started by `draftsman up`.",
        navigation.processes,
        "L",
        "General",
    ),
    DashboardCommand(
        "suspend",
        "Suspend to the shell; fg resumes.",
        navigation.suspend,
        "ctrl+z",
        "General",
    ),
    DashboardCommand("quit", "Quit.", navigation.leave, "q,ctrl+q", "General", footer=True),
)
