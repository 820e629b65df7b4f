"""Lists nonstandard phrases as `file:line: phrase`, and their number per 1,000 words.

python -m tests.language [--folder core/draftsman/store] [--kind messages] [--phrase one] [--lower]
"""

from __future__ import annotations

import argparse
import signal
import sys

from tests.language.corpus import KINDS, Text, read_texts
from tests.language.phrases import MOST, find_hits
from tests.language.report import LIMITS, Measure, lowered_limits, measure_folders, read_limits


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as in `python -m tests.language | head`
    parser = argparse.ArgumentParser(prog="python -m tests.language")
    parser.add_argument("--folder", default="", help="only files below this path")
    parser.add_argument("--kind", choices=KINDS, help="texts of this kind only")
    parser.add_argument("--phrase", choices=MOST, help="this phrase only")
    parser.add_argument("--summary", action="store_true", help="the figures of each folder only")
    parser.add_argument("--lower", action="store_true", help="lower the limits of all folders")
    options = parser.parse_args()
    if options.lower:
        lowered = lowered_limits(measure_folders(read_texts()), read_limits())
        LIMITS.write_text(lowered, encoding="utf-8")
        return
    texts = [
        text
        for text in read_texts()
        if (text.path.as_posix() + "/").startswith(options.folder)
        and options.kind in (None, text.kind)
    ]
    if not options.summary:
        _list(texts, options.phrase)
    _summarize(texts)


def _list(texts: list[Text], phrase: str | None) -> None:
    for text in texts:
        for hit in find_hits(text.content):
            if phrase in (None, hit.phrase):
                line = text.line + text.content.count("\n", 0, hit.offset)
                sys.stdout.write(f"{text.path}:{line}: {text.kind}: {hit.phrase}: {hit.excerpt}\n")


def _summarize(texts: list[Text]) -> None:
    """Print the number of phrases per 1,000 words of each folder, and in total."""
    columns = "".join(f"{phrase:>10}" for phrase in MOST)
    sys.stdout.write(f"\n{'folder':32}{'kind':10}{'words':>7}{columns}\n")
    measures = measure_folders(texts)
    for kind in KINDS:
        total = Measure()
        for text in texts:
            if text.kind == kind:
                total.add(text)
        folders = [(folder, m) for (folder, its), m in sorted(measures.items()) if its == kind]
        for folder, measure in [*folders, ("all of these", total)]:
            rates = "".join(f"{measure.rate(phrase):10.1f}" for phrase in MOST)
            sys.stdout.write(f"{folder:32}{kind:10}{measure.words:7}{rates}\n")


if __name__ == "__main__":
    main()
