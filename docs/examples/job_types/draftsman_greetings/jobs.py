"""The job types of this package: a worker that has it installed runs them."""

from dataclasses import dataclass
from typing import Literal

from draftsman import Answered, BlockingRunContext, job

WORDS = {"en": "Hello", "de": "Hallo", "fr": "Bonjour"}


@dataclass
class Greeting:
    text: str
    sent: bool


@job("greet", title="Greet {name}", max_retries=2)
def greet(ctx: BlockingRunContext, name: str, language: Literal["en", "de", "fr"] = "en") -> Greeting:
    """Greet a person, once somebody has agreed."""
    text = f"{WORDS[language]}, {name}!"
    answer = ctx.ask("send", f"Send “{text}”?", choices=["yes", "no"])
    sent = isinstance(answer, Answered) and answer.value == "yes"
    if sent:
        ctx.step("send", lambda invocation: None)  # with `invocation` as its idempotency key
    return Greeting(text, sent)
