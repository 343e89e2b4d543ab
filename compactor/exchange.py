"""What is said to a model, and what it says back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model."""

    messages: tuple[Mapping[str, Any], ...]
    """`{role, content}` in OpenAI's form; only those of a reused prefix have tool calls and other content."""
    max_tokens: int
    """Tokens that the reply may take."""
    schema: Mapping[str, Any] = field(default_factory=dict)
    """The JSON Schema of the reply, where structured output is wanted."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """The tools that a reused prefix was written with; the model is told to call none."""
    tokens: int = 0
    """How large the messages are, by our own count; not sent."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What exchanges took: tokens as the provider counted them, US dollars, seconds."""

    calls: int = 0
    tokens_in: int = 0
    cached: int = 0
    """Those of `tokens_in` that the provider read from its cache."""
    tokens_out: int = 0
    cost: float | None = 0.0
    """None where the price is unknown."""
    seconds: float = 0.0
    reused: int = 0
    """Replies that came from the log and cost nothing; not among `calls`."""
    about: bool = False
    """Whether some of the tokens are our own count, since nobody said."""

    @property
    def told(self) -> str:
        """In words."""
        calls = [f"{self.calls} call{'s' * (self.calls != 1)}"] * bool(self.calls or not self.reused)
        calls += [f"{self.reused} from the log"] * bool(self.reused)
        cached = f" ({self.cached:,} cached)" if self.cached else ""
        price = "price unknown" if self.cost is None else f"${self.cost:.4f}"
        about = "about " if self.about else ""
        took = f"{about}{self.tokens_in:,} tokens in{cached}, {self.tokens_out:,} out, {price}, {self.seconds:.0f} s"
        return f"{', '.join(calls)}, {took}"

    def __add__(self, other: "Usage") -> "Usage":
        known = self.cost is not None and other.cost is not None
        return Usage(
            self.calls + other.calls, self.tokens_in + other.tokens_in, self.cached + other.cached,
            self.tokens_out + other.tokens_out, (self.cost or 0.0) + (other.cost or 0.0) if known else None,
            self.seconds + other.seconds, self.reused + other.reused, self.about or other.about,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered, as it came: whether it is any good is for the reader to say."""

    text: str = ""
    finish: str = "stop"
    """Why it ended, in OpenAI's words: stop, length, content_filter, tool_calls."""
    refusal: str = ""
    """Where the provider says apart that the model refuses."""
    reasoning: bool = False
    """Whether it came with reasoning, which is never part of `text`."""
    usage: Usage = Usage()
    notes: tuple[str, ...] = ()
    """What the exchange went through that the user should know: a fall-back, a wait."""


class Model(Protocol):
    """Something that can be asked."""

    @property
    def name(self) -> str: ...

    def complete(self, request: Request) -> Reply:
        """The model's answer. Raises ModelError where there is none, TooLongError where the request doesn't fit."""
        ...

    def accepted(self, request: Request) -> None:
        """Say that the last reply to this request was complete and could be used: it may be given again."""
        ...
