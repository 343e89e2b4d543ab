"""Whom the user wants asked, by name, as models that can be asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from threading import Event
from typing import TYPE_CHECKING, Any

from compactor.errors import UsageError
from compactor.exchange import Model

if TYPE_CHECKING:
    from compactor.summarize import Asking

DEFAULT_TIMEOUT_S = 600.0
OFFLINE = "offline"


@dataclass(frozen=True)
class Ask:
    """What the user asked for; names of models as LiteLLM has them, `cmd:COMMAND` or `scripted:FILE`."""

    model: str | Model = ""
    """A name, or a model of one's own."""
    fallback: tuple[str, ...] = ()
    """Models to ask when those before failed; `offline` at the end for the summary that needs none."""
    window: int = 0
    """Tokens of the model's window; 0 for what is known of it."""
    timeout_s: float = DEFAULT_TIMEOUT_S
    max_cost: float | None = None
    parallel: bool = False
    reuse_prefix: bool = False
    tools: tuple[Mapping[str, Any], ...] = ()
    """The tools of the session, where its prefix is reused."""
    instruction: str = ""
    """In place of our own."""
    thinking: bool = False
    """Whether the model is told the agent's thinking too; some refuse then."""
    log: bool = True
    """Whether replies are kept, and given again to the same request."""


def asking(given: Ask, focus: str = "", tell: Callable[[str], None] = lambda _: None,
           cancel: Event | None = None) -> "Asking | None":  # fmt: skip
    """The models to ask, with how; None where none is named. Raises UsageError for what doesn't go together."""
    if not given.model:
        if idle := _idle(given):
            message = f"{idle} does nothing without -m MODEL; name one, or leave it out"
            raise UsageError(message)
        return None
    named = [name.strip() for name in given.fallback if name.strip()]
    for name in named:
        if name != OFFLINE and get_close_matches(name, [OFFLINE], cutoff=0.7):
            message = f"--fallback: no model is called {name}; {OFFLINE} is the summary that needs none"
            raise UsageError(message)
    if OFFLINE in named[:-1]:
        message = "--fallback: offline never fails, so it comes last"
        raise UsageError(message)
    from compactor.prompt import Wish  # what only a model needs is loaded when one is named
    from compactor.summarize import Asking, Purse

    names = [given.model, *(name for name in named if name != OFFLINE)]

    return Asking(
        models=tuple(_model(name, given, cancel) for name in names),
        fallback_offline=OFFLINE in named,
        window=given.window,
        parallel=given.parallel,
        purse=None if given.max_cost is None else Purse(given.max_cost),
        wish=Wish(given.instruction, focus, given.thinking),
        reuse_prefix=given.reuse_prefix,
        tools=given.tools,
        tell=tell,
        cancel=cancel,
    )


def _idle(given: Ask) -> str:
    """A flag that was given and says how to ask, where nobody is asked; empty where there is none.

    A window is no such flag: `compact prompt` tells what would be sent to anybody.
    """
    flags = {
        "--fallback": any(name != OFFLINE for name in given.fallback), "--max-cost": given.max_cost is not None,
        "--parallel": given.parallel, "--reuse-prefix": given.reuse_prefix,
        "--thinking": given.thinking,
    }  # fmt: skip
    return next((flag for flag, set_ in flags.items() if set_), "")


def _model(name: str | Model, given: Ask, cancel: Event | None) -> Model:
    if not isinstance(name, str):
        return name
    from compactor.model import model_named
    from compactor.replies import Logged

    model = model_named(name, timeout_s=given.timeout_s, cancel=cancel)
    return Logged(model) if given.log and not name.startswith("scripted:") else model
