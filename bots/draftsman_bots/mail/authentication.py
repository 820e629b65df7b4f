"""Whether the receiving server confirms the sender of a mail (RFC 8601, RFC 7489). Pure.

Of the fields `Authentication-Results`, only the topmost count, which the server writes above those
that arrived with the mail, and only if they have its name. A pass of DKIM or SPF counts if its
domain and that of `From` have the same organizational domain, by the public suffix list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from publicsuffixlist import PublicSuffixList

PASSES: Final = {
    "dkim": re.compile(r" header\.(?:d=|i=[^\s@]*@)([a-z0-9._-]+)(?= |$)"),
    "spf": re.compile(r" smtp\.mailfrom=(?:[^\s@]*@)?([a-z0-9._-]+)(?= |$)"),
}
"""Property of each method that has the domain which passed."""
_QUOTE_OR_COMMENT: Final = re.compile(r'"(?:([a-z0-9@._+-]*)"|[^"\\]*")|\([^()"\\]*\)')
_COMMENT: Final = re.compile(r"\([^()]*\)")


def sender_problem(fields: Sequence[str], server: str, most: int, domain: str) -> str:
    """Return why the server confirms no sender of the domain; "" if it confirms one.

    `fields` are the values of the header fields from the top, of which the server adds `most`.
    """
    names = (server.lower(), f"{server.lower()} 1")
    own = [results for field in fields[:most] if (results := _results(field))[0] in names]
    if not server or not own:
        return f"it has no result of {server or 'a server: authserv_id is not set'}"
    passed: set[str] = set()
    for result in (result for results in own for result in results[1:]):
        method, _, value = result.partition("=")
        if method == "dmarc" and value.partition(" ")[0] == "fail":
            return "DMARC failed"
        if method in PASSES and value.startswith("pass "):
            passed |= set(PASSES[method].findall(value)[:1])
    if any(is_aligned(name, domain) for name in passed):
        return ""
    others = ", ".join(sorted(passed))
    return f"only {others} passed DKIM or SPF" if others else "neither DKIM nor SPF passed"


def is_aligned(domain: str, other: str) -> bool:
    """Return whether two domains have the same organizational domain."""
    organization = _suffixes().privatesuffix(domain)
    return organization is not None and organization == _suffixes().privatesuffix(other)


def _results(field: str) -> list[str]:
    """Return the server of a field and its results, such as `dkim=pass header.d=example.org`.

    Comments are left out, and quotes that are no single word. A field in which any is open says
    nothing: its sender may have written what is in it.
    """
    text = _QUOTE_OR_COMMENT.sub(lambda m: m[1] or ("?" if m[0][0] == '"' else " "), field.lower())
    while (shorter := _COMMENT.sub(" ", text)) != text:
        text = shorter
    if set(text) & set('"()\\'):
        return [""]
    results = (" ".join(result.split()) for result in text.split(";"))
    return [re.sub(r" ?([=.]) ?", r"\1", result) for result in results]


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()
