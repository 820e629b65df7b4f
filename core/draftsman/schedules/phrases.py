"""Rules of schedules in plain English, such as `every weekday at 9`.

    every 90m · every 2 hours · every hour
    every day|weekday|monday|mon,thu|monday to friday at TIME [ZONE]
    every month on the 1st|last day at TIME [ZONE]
    today|tomorrow|on friday|on 2030-12-31 at TIME [ZONE]
    in 90m · in 2 hours

TIME is 9, 9:30, 17:05, 9am, 9:30 pm or noon; ZONE an IANA name. Text may follow, after a colon or
directly; it may not begin with a word that could continue the rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from draftsman.durations import UNITS
from draftsman.errors import UsageError
from draftsman.schedules.schedule import MAX_INTERVAL, MIN_INTERVAL, find_zone, parse_rule

EXAMPLES: Final = "examples: every weekday at 9, every 90m, tomorrow at 14:00"
FIRST_WORDS: Final = frozenset({"every", "today", "tomorrow", "on", "in"})
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        (
            ("mon", "monday"),
            ("tue", "tuesday"),
            ("wed", "wednesday"),
            ("thu", "thursday"),
            ("fri", "friday"),
            ("sat", "saturday"),
            ("sun", "sunday"),
        )
    )
    for name in names
}
_UNITS: Final = {name: int(seconds) for name, seconds in UNITS.items() if seconds in (60, 3600)}
_LAST_DAY: Final = 28
"""Last day that each month has."""
_SPAN: Final = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})(?:m|min))?")
_CLOCK: Final = re.compile(r"([0-9]{1,2})(?::([0-9]{2}))?(am|pm)?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ORDINAL: Final = re.compile(r"([0-9]{1,2})(st|nd|rd|th)")
_ZONE: Final = re.compile(
    r"(?:africa|america|antarctica|arctic|asia|atlantic|australia|brazil|canada|chile|etc|europe"
    r"|indian|mexico|pacific|us)/\S+"
)
_CONTINUES: Final = frozenset(
    {
        "after",
        "also",
        "am",
        "a.m.",
        "and",
        "at",
        "before",
        "between",
        "but",
        "each",
        "every",
        "except",
        "excluding",
        "for",
        "from",
        "if",
        "in",
        "next",
        "o'clock",
        "oclock",
        "on",
        "once",
        "only",
        "or",
        "pm",
        "p.m.",
        "sharp",
        "starting",
        "then",
        "through",
        "thru",
        "till",
        "times",
        "to",
        "twice",
        "unless",
        "until",
        "when",
        "while",
        "with",
        "within",
        "without",
        "daily",
        "day",
        "days",
        "h",
        "hourly",
        "hours",
        "hrs",
        "minutes",
        "month",
        "monthly",
        "months",
        "today",
        "tomorrow",
        "week",
        "weekday",
        "weekdays",
        "weekend",
        "weekends",
        "weekly",
        "weeks",
        "year",
        "yearly",
        "years",
        "cest",
        "cet",
        "cdt",
        "cst",
        "edt",
        "est",
        "gmt",
        "ist",
        "jst",
        "mdt",
        "mst",
        "pdt",
        "pst",
        "utc",
        *_WEEKDAYS,
        *(f"{name}s" for name in _WEEKDAYS),
    }
)
"""Words that may continue a rule; text that begins with such a word follows a colon."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A rule as it was typed; `zone` is the zone that it names, if any."""

    text: str
    zone: str | None = None
    repeats: str | None = None
    """The rule of a schedule that repeats."""
    delay: timedelta | None = None
    """The time from now until a single occurrence."""
    day: date | int | str | None = None
    """The day of a single occurrence: a date, the number of days from today, or a day name."""
    clock: time | None = None

    def rule(self, zone: str, now: datetime) -> str:
        """Return the rule in its normal form, in the zone of the phrase or else in this zone.

        Raises UsageError for a time that is past, that the clock skips, or that it repeats.
        """
        name = self.zone or zone
        if self.repeats is not None:
            return parse_rule(self.repeats, name)
        at = now + self.delay if self.delay is not None else self._instant(name, now)
        return parse_rule(f"@at {at.astimezone(UTC).replace(microsecond=0).isoformat()}", name)

    def _instant(self, name: str, now: datetime) -> datetime:
        zone = find_zone(name)
        local = now.astimezone(zone)
        clock = self.clock or time()
        try:
            wall = datetime.combine(self._date(local.date()), clock)
            first, second = (wall.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
            round_trip = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None)
            ambiguous = first.utcoffset() != second.utcoffset()
        except OverflowError:
            raise _refused(self.text, "the date is out of range") from None
        if ambiguous:
            problem = "occurs twice" if round_trip == wall else "does not occur"
            raise _refused(
                self.text, f"{wall:%Y-%m-%d %H:%M} {problem} in {name}: the clock is changed"
            )
        if first <= now:
            raise _refused(self.text, f"{wall:%Y-%m-%d %H:%M} in {name} is past")
        return first

    def _date(self, today: date) -> date:
        if isinstance(self.day, date):
            return self.day
        if isinstance(self.day, str):
            days = (_WEEKDAYS[self.day] - today.weekday()) % 7
            if not days:
                raise _refused(
                    self.text, f"today is such a day; write today, or {today + timedelta(days=7)}"
                )
            return today + timedelta(days=days)
        return today + timedelta(days=self.day or 0)


def read_phrase(text: str) -> tuple[Phrase, str]:
    """Return the phrase at the beginning of a text, and the text after it.

    Raises UsageError, with examples, for all that is not understood.
    """
    words = _Words(text)
    first = words.take()
    if first == "every":
        phrase = _repeating(words)
    elif first in ("today", "tomorrow"):
        phrase = _single(words, int(first == "tomorrow"))
    elif first == "on":
        phrase = _single(words, _day(words))
    elif first == "in":
        phrase = Phrase(words.taken, delay=timedelta(seconds=_interval(words)))
    else:
        raise words.refused("a rule begins with every, today, tomorrow, on or in")
    following = words.rest()
    return replace(phrase, text=words.taken), following


def whole_phrase(text: str) -> Phrase:
    """Return the phrase that a text is; raises UsageError, also if text follows."""
    phrase, following = read_phrase(text)
    if following:
        raise _refused(text, f"not understood: {following[:40]!r}")
    return phrase


class _Words:
    """The words of a text; a colon after a word ends the phrase."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = [(match[0], match.end()) for match in re.finditer(r"\S+", text)]
        self._position = 0
        self._closed = False

    @property
    def taken(self) -> str:
        """The words that were taken."""
        words = [word for word, _ in self._words[: self._position]]
        return " ".join(words).removesuffix(":" if self._closed else "")

    def peek(self) -> str:
        """Return the next word in lower case, "" at the end of the phrase."""
        return self.peek_exactly().lower()

    def peek_exactly(self) -> str:
        """Return the next word without the colon that ends the phrase."""
        if self._closed or self._position == len(self._words):
            return ""
        word = self._words[self._position][0]
        return word[:-1] if word.endswith(":") else word

    def take(self) -> str:
        """Return the next word in lower case, and go on."""
        word = self.peek()
        if word or not self._closed:
            self._closed = (
                self._position < len(self._words) and self._words[self._position][0][-1] == ":"
            )
            self._position = min(self._position + 1, len(self._words))
        return word

    def skip(self, word: str) -> bool:
        """Take the next word if it is this word; return whether it was."""
        if self.peek() != word:
            return False
        self.take()
        return True

    def need(self, word: str, example: str) -> None:
        """Take this word; raises UsageError if another is next."""
        if not self.skip(word):
            raise self.expected(f"{word!r}, as in {example!r}")

    def expected(self, what: str) -> UsageError:
        """Return the error of an unexpected word."""
        word = self.peek_exactly()
        return self.refused(f"expected {what}, not {word[:40]!r}" if word else f"expected {what}")

    def refused(self, problem: str) -> UsageError:
        """Return the error with the text and examples."""
        return _refused(self._text, problem)

    def rest(self) -> str:
        """Return the text after the phrase; raises UsageError if it may continue the phrase."""
        start = self._words[self._position - 1][1] if self._position else 0
        following = self._text[start:].strip()
        if self._closed or not following:
            return following
        word = following.split(None, 1)[0].lower()
        plain = word.rstrip(":,;.")
        if word[0].isdigit() or word[0] in ",;:.+&/" or plain in _CONTINUES:
            raise self.refused(
                f"{word[:40]!r} is not understood; text that begins so follows a colon:"
                f" '{self.taken}: {following[:40]}'"
            )
        return following


def _repeating(words: _Words) -> Phrase:
    if words.peek() in ("hour", "minute"):
        return Phrase("", repeats=f"@every {'60' if words.take() == 'hour' else '1'}m")
    if words.peek()[:1].isdigit():
        return Phrase("", repeats=f"@every {_interval(words) // 60}m")
    if words.skip("month"):
        words.need("on", "every month on the 1st at 9")
        words.need("the", "every month on the 1st at 9")
        fields = f"{_day_of_month(words)} * *"
    elif words.skip("day"):
        fields = "* * *"
    elif words.skip("weekday"):
        fields = "* * mon-fri"
    else:
        days = ",".join(_DAYS[day] for day in _weekdays(words))
        fields = f"* * {days}"
    clock, zone = _clock(words, "every weekday at 9")
    return Phrase("", zone, repeats=f"{clock.minute} {clock.hour} {fields}")


def _single(words: _Words, day: date | int | str) -> Phrase:
    clock, zone = _clock(words, "tomorrow at 14:00")
    return Phrase("", zone, day=day, clock=clock)


def _day(words: _Words) -> date | str:
    """Take a date or a day of the week."""
    word = words.peek()
    if word in _WEEKDAYS:
        return words.take()
    if _DATE.fullmatch(word) is None:
        raise words.expected("a day such as friday, or a date such as 2030-12-31")
    try:
        day = date.fromisoformat(word)
    except ValueError:
        raise words.refused(f"there is no {word}") from None
    words.take()
    return day


def _weekdays(words: _Words) -> list[int]:
    """Take days of the week: `monday`, `mon,thu`, `monday, tuesday and friday`, `mon to fri`."""
    days: set[int] = set()
    previous = ""
    is_range = False
    while True:
        word = words.peek()
        names = word.removesuffix(",").split(",")
        if len(names) == 1 and "-" in names[0]:
            low, _, high = names[0].partition("-")
            if days or {low, high} - _WEEKDAYS.keys():
                raise words.expected("days such as mon-fri")
            words.take()
            return _range(low, high)
        if not all(name in _WEEKDAYS for name in names):
            raise words.expected("day, weekday, month, a day of the week, or an interval")
        words.take()
        if is_range:
            return _range(previous, names[0])
        previous = names[-1]
        days |= {_WEEKDAYS[name] for name in names}
        if words.peek() == "to" and len(days) == 1 and not word.endswith(","):
            is_range = words.skip("to")
        elif not (words.skip("and") or word.endswith(",")):
            return sorted(days)


def _range(low: str, high: str) -> list[int]:
    first = _WEEKDAYS[low]
    last = _WEEKDAYS[high]
    return sorted({(first + step) % 7 for step in range((last - first) % 7 + 1)})


def _day_of_month(words: _Words) -> str:
    """Take a day of the month: `1st`, `last day`."""
    if words.skip("last"):
        words.need("day", "every month on the last day at 9")
        return "L"
    match = _ORDINAL.fullmatch(words.peek())
    if match is None:
        raise words.expected("a day such as 1st, or 'last day'")
    day = int(match[1])
    suffix = "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    if match[2] != suffix or not 1 <= day <= _LAST_DAY:
        raise words.expected("1st to 28th, which each month has, or 'last day'")
    words.take()
    return str(day)


def _interval(words: _Words) -> int:
    """Take an interval such as `90m`, `1h30m`, `2 hours` or `1 h 30 min`; return its seconds."""
    seconds = _amount(words)
    while words.peek()[:1].isdigit():
        seconds += _amount(words)
    if not MIN_INTERVAL <= seconds <= MAX_INTERVAL:
        raise words.refused("an interval is at least 1m and at most 8784h")
    return seconds


def _amount(words: _Words) -> int:
    """Take a part of an interval."""
    word = words.peek()
    match = _SPAN.fullmatch(word)
    if word and match is not None:
        words.take()
        return int(match[1] or 0) * 3600 + int(match[2] or 0) * 60
    if not (word.isascii() and word.isdigit() and len(word) < 7):
        raise words.expected("an interval in minutes or hours, such as 90m, 1h30m or 2 hours")
    words.take()
    unit = words.peek()
    if unit not in _UNITS:
        raise words.expected("minutes or hours; a day is 24h")
    words.take()
    return int(word) * _UNITS[unit]


def _clock(words: _Words, example: str) -> tuple[time, str | None]:
    """Take `at` with a time of the day, and the time zone after it, if any."""
    words.need("at", example)
    clock = time(12) if words.skip("noon") else _time(words)
    named = words.skip("in")
    word = words.peek()
    if word == "utc":
        words.take()
        return clock, "UTC"
    if named or _ZONE.fullmatch(word):
        name = words.peek_exactly()
        if not name:
            raise words.expected("a time zone such as Europe/Berlin")
        try:
            find_zone(name)
        except UsageError as error:
            raise words.refused(str(error)) from None
        words.take()
        return clock, name
    return clock, None


def _time(words: _Words) -> time:
    match = _CLOCK.fullmatch(words.peek())
    if match is None:
        raise words.expected("a time such as 9, 9:30 or 14:00")
    hour = int(match[1])
    minute = int(match[2] or 0)
    half = match[3]
    following = ""
    words.take()
    if half is None and words.peek() in ("am", "pm"):
        following = words.take()
        half = following
    if half is not None:
        if not 1 <= hour <= 12:
            raise words.refused(f"{match[0]} {following}".strip() + " is not a time")
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or minute > 59:
        raise words.refused(f"{match[0]!r} is not a time; the last is 23:59")
    return time(hour, minute)


def _refused(text: str, problem: str) -> UsageError:
    line = " ".join(text.split())
    return UsageError(f"{line[:60]!r}: {problem}; {EXAMPLES}")
