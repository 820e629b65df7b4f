"""Typography: what keyboards, editors and mail programs make of what a person types. Pure.

A keyboard writes `—repo` for `--repo` and `„pay“` for `"pay"`, a page has no-break spaces and
hyphens, and a mail program adds a signature.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from draftsman.formats.invisible import FORMAT

LONG_DASHES: Final = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
DASHES: Final = f"-{LONG_DASHES}"
_SLASHES: Final = "\u2044\u2215"
_SPACES: Final = " \t\n\r\f\v\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_BLANK: Final = f"[{_SPACES}{FORMAT}\ufe0f]+"
_ENDS: Final = re.compile(rf"\A{_BLANK}|{_BLANK}\Z")
_PLAIN: Final = {
    **dict.fromkeys(map(ord, LONG_DASHES), "-"),
    **dict.fromkeys(map(ord, _SLASHES), "/"),
    0x1680: " ",
}
_PAIRS: Final = (
    *('""', "''", "“”“", "„“”", "””", "‘’‘", "‚‘’", "’’"),  # noqa: RUF001
    *("«»", "»«", "‹›", "›‹", "「」", "『』", "＂＂"),  # noqa: RUF001
)
QUOTES: Final = {pair[0]: pair[1:] for pair in _PAIRS}
"""The closing quotes of each opening one: languages use the same ones differently."""
_WRAPPING: Final = "".join(["*_`", *_PAIRS, " \xa0\u202f"])
_PROGRAMS: Final = (
    "iphone|ipad|ios|android|galaxy|samsung|huawei|xiaomi|pixel|blackberry|outlook|gmail|gmx|web\\.de"
    "|aol|yahoo|proton|thunderbird|superhuman|spark|mail (?:f[oü]r|pour|para|per|voor) windows"
    "|phone|mobile|tablet|handy|smartphone|t[ée]l[ée]phone|m[óo]vil|celular|telefoon|device|ger[äa]t"
)
_SENT: Final = re.compile(
    "(?:sent|gesendet|verschickt|envoyé|enviado|inviato|verzonden|verstuurd|skickat|sendt"
    "|wysłan[eoy]|odesláno|отправлено) "
    "(?:from|with|via|using|von|mit|aus|de|depuis|à partir de|avec|desde|con|do|pelo|da|dal"
    "|vanaf|met|vanuit|från|fra|z|с) "  # noqa: RUF001
    "(?:(?:my|the|meine[mr]|de[mr]|mon|mi|meu|mio|mijn|min|mojego|mého) )?"
    rf"(?:\S{{1,15}} ){{0,3}}?\[?(?:{_PROGRAMS}).{{0,80}}"
    "|(?:von meine[mr]|diese (?:nachricht|e-?mail|mail) wurde von) .{2,60} gesendet.?"
    "|(?:get|holen sie sich|obtenir|télécharger|obtener|obter o|scarica|ottieni)"
    r" \[?(?:outlook|gmail|yahoo|proton).{0,20} (?:ios|android|mac|windows|mobile)\b.{0,80}"
    "|outlook .{2,8} (?:ios|android|mac|windows) (?:beziehen|downloaden|herunterladen).{0,40}"
    "|(?:lähetetty|发自我的|發自我的|從我的|傳送自) ?(?:iphone|ipad|android).{0,20}"
    "|(?:iphone|ipad|android).{0,12}(?:から送信|gönderildi|傳送|보냄)",
    re.IGNORECASE,
)
"""A line that a program adds below a mail, such as `Sent from my iPhone`."""
_ATTRIBUTION: Final = re.compile(
    r"(?:on|am|le|el|il|op|em|den) .{4,160}"
    r"\b(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|escreveu|skrev)\b.{0,80}:",
    re.IGNORECASE,
)
"""The line above a quote, such as `On Monday, Anna wrote:`."""
_DELIMITER: Final = "--"
MAX_SIGNATURE: Final = 6
"""Lines of a signature below `--`; more may be a text."""
_MAX_LINE: Final = 80


def plain(text: str) -> str:
    """Return the text with plain spaces, dashes, slashes and widths; each character is still one.

    A command is recognized in it, and its argument is taken from the text itself.
    """
    return text if text.isascii() else "".join(map(_plain, text))


def _plain(character: str) -> str:
    if character.isascii():
        return character
    if known := _PLAIN.get(ord(character)):
        return known
    normal = unicodedata.normalize("NFKC", character)
    return normal if len(normal) == 1 and normal.isascii() else character


def stripped(text: str) -> str:
    """Return the text without spaces and invisible characters around it."""
    return _ENDS.sub("", text)


def bare(text: str) -> str:
    """Return a word without emphasis and quotes around it, and without a full stop."""
    return stripped(text).strip(_WRAPPING).rstrip(".!,;: ").strip(_WRAPPING)


def without_signature(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines of a text without the signature at its end, but never without the first.

    A signature is what a mail program adds, and a few short lines below `--`.
    """
    end = len(lines)
    while end > 1:
        line = plain(stripped(lines[end - 1]))
        if line and not (_SENT.fullmatch(line) or _ATTRIBUTION.fullmatch(line)):
            break
        end -= 1
    below = range(max(1, end - 1 - MAX_SIGNATURE), end)
    delimiter = next((index for index in below if stripped(lines[index]) == _DELIMITER), None)
    if delimiter is not None and all(len(line) <= _MAX_LINE for line in lines[delimiter:end]):
        return without_signature(lines[:delimiter])
    return lines[:end]
