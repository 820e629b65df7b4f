"""Issues and pull requests as targets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

CHANNEL: Final = "forge"
"""Channel of comments on issues and pull requests, which a package declares."""
_ISSUE: Final = re.compile(
    r"(?P<forge>[A-Za-z0-9_-]{1,100})/(?P<path>[\w.-]+(?:/[\w.-]+)+)(?P<sign>[#!])"
    r"(?P<number>[1-9][0-9]{0,8})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class IssueTarget:
    """An issue or a pull request: `work/acme/pay#12`; `!12` if these are numbered apart."""

    forge: str
    """Table of the forge in the configuration."""
    path: str
    """Repository: `acme/pay`, in lower case."""
    number: int
    is_pull: bool = False
    """Whether it is a pull request of a forge that counts issues separately."""

    @property
    def target(self) -> str:
        """Notation of the target, without its channel."""
        return f"{self.forge}/{self.path}{'!' if self.is_pull else '#'}{self.number}"

    @classmethod
    def of(cls, text: str) -> IssueTarget:
        """Parse a target; raises ValueError."""
        if (match := _ISSUE.fullmatch(text)) is None:
            raise ValueError(
                "use the table of the forge, the repository and the number of the issue or pull"
                " request, such as forge:work/acme/pay#12; for a merge request, which is numbered"
                " apart, forge:work/acme/pay!12"
            )
        path = match["path"].casefold()
        return cls(match["forge"], path, int(match["number"]), match["sign"] == "!")
