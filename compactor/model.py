"""Models that can be asked: by their names, and those that LiteLLM reaches.

The others are scripted.py and command.py; what LiteLLM's exceptions mean is in failures.py.
"""

import json
import logging
import os
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from threading import Event, Lock
from typing import Any

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential_jitter

from compactor import catalog
from compactor.command import Command
from compactor.errors import ModelError, UsageError
from compactor.exchange import Model, Reply, Request, Usage
from compactor.failures import Failure, Retry, check, diagnose
from compactor.scripted import Scripted

LITELLM_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # the tables are fetched from the network otherwise
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",  # else some versions read the .env of the folder, which may name another server
}
FINISH = {
    "end_turn": "stop", "stop_sequence": "stop", "eos": "stop", "max_tokens": "length", "tool_use": "tool_calls",
    "function_call": "tool_calls", "refusal": "content_filter", "safety": "content_filter",
}  # fmt: skip
"""Providers' words for why a reply ended, where LiteLLM leaves them."""
WITHOUT = {
    "response_format": "without structured output: the provider doesn't take it",
    "max_tokens": "with max_completion_tokens: the provider doesn't take max_tokens",
    "tool_choice": "without tool_choice: the provider doesn't take it",
}

_loading = Lock()


def model_named(
    name: str, *, timeout_s: float = 600.0, cancel: Event | None = None, attempts: int = 5,
    wait: Callable[[float], None] | None = None,
) -> Model:  # fmt: skip
    """The model of that name: `scripted:FILE`, `cmd:COMMAND`, or as LiteLLM names it.

    Setting `cancel` ends waits and commands. At most `attempts` tries are made where waiting can cure a failure;
    `wait` is what waits. Raises UsageError for a name that can't be one, InputError for a bad script.
    """
    kind, _, rest = name.partition(":")
    if not name.strip() or (kind in ("scripted", "cmd") and not rest.strip()):
        message = f"'{name}' names no model; give provider/model as LiteLLM names it, cmd:COMMAND or scripted:FILE"
        raise UsageError(message)
    if kind == "scripted":
        return Scripted(rest)
    if kind == "cmd":
        return Command(rest, timeout_s, cancel or Event())
    return LiteLLM(name, timeout_s, cancel or Event(), attempts, wait)


class LiteLLM:
    """Asks a provider through LiteLLM; the key and the API's address come from the environment."""

    def __init__(
        self, name: str, timeout_s: float, cancel: Event, attempts: int, wait: Callable[[float], None] | None
    ) -> None:
        self.name = name
        self._timeout_s = timeout_s
        self._cancel = cancel
        self._attempts = attempts
        self._wait = wait
        self._without: set[str] = set()
        """Parameters that the provider turned out not to take."""

    def complete(self, request: Request) -> Reply:
        """The provider's answer, asked for again where waiting can cure the failure."""
        check(self._cancel)
        started = time.monotonic()
        waits: list[tuple[str, float]] = []
        retrying = Retrying(
            retry=retry_if_exception_type(_Failed),
            stop=lambda state: self._is_over(state, waits),
            wait=_pause_s,
            before_sleep=lambda state: waits.append((_failure(state).waits_for, state.upcoming_sleep)),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            response, notes = retrying(self._ask, request)
        except _Failed as failed:
            raise failed.failure.error(self.name, len(waits) + 1) from failed.__cause__
        return _read(response, self.name, time.monotonic() - started, (*notes, *_waited(waits)))

    def accepted(self, request: Request) -> None:
        """Nothing is kept."""

    def _ask(self, request: Request) -> tuple[Any, tuple[str, ...]]:
        """LiteLLM's response, and what had to be left out for it."""
        litellm = _litellm()
        notes: list[str] = []
        while True:
            options = self._options(request, litellm)
            try:
                response = litellm.completion(
                    model=self.name, messages=_plain(request.messages), num_retries=0, max_retries=0, **options
                )
                return response, tuple(notes)
            except Exception as error:  # LiteLLM raises whatever a provider's code does
                failure = diagnose(error, self.name, options)
                if not failure.parameter:
                    raise _Failed(failure) from error
                self._without.add(failure.parameter)
                notes.append(f"asked {WITHOUT[failure.parameter]}")

    def _options(self, request: Request, litellm: Any) -> dict[str, Any]:
        limit = "max_completion_tokens" if "max_tokens" in self._without else "max_tokens"
        options: dict[str, Any] = {"timeout": self._timeout_s, limit: request.max_tokens}
        if request.tools:
            options["tools"] = _plain(request.tools)
        if request.tools and "tool_choice" not in self._without:
            options["tool_choice"] = "none"
        formatted = request.schema and "response_format" not in self._without
        if formatted and litellm.supports_response_schema(model=self.name):
            schema = {"name": "update", "strict": True, "schema": _plain(request.schema)}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        return options

    def _is_over(self, state: RetryCallState, waits: list[tuple[str, float]]) -> bool:
        failure = _failure(state)
        again = failure.retry is Retry.ONCE and failure.waits_for in dict(waits)
        return failure.retry is Retry.NEVER or again or state.attempt_number >= self._attempts

    def _sleep(self, seconds: float) -> None:
        check(self._cancel)
        (self._wait or self._cancel.wait)(seconds)
        check(self._cancel)


class _Failed(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.what)
        self.failure = failure


def _failure(state: RetryCallState) -> Failure:
    failed = state.outcome and state.outcome.exception()
    assert isinstance(failed, _Failed)
    return failed.failure


_backoff = wait_exponential_jitter(initial=1, max=60, jitter=1)


def _pause_s(state: RetryCallState) -> float:
    """What the provider asks for, else longer from try to try."""
    return _failure(state).after_s or _backoff(state)


def _waited(waits: list[tuple[str, float]]) -> list[str]:
    """What the user should know of the waits: one line for each reason."""
    causes: dict[str, list[float]] = {}
    for cause, seconds in waits:
        causes.setdefault(cause, []).append(seconds)
    return [
        f"waited {sum(pauses):.3g} s for {cause}" + (f", {len(pauses)} times" if len(pauses) > 1 else "")
        for cause, pauses in causes.items()
    ]


def _litellm() -> Any:
    """The library, quiet and offline."""
    litellm: Any  # its types would take a checker minutes
    with _loading:
        for name, value in LITELLM_ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            litellm = import_module("litellm")
        litellm.suppress_debug_info = True
        litellm.telemetry = False
        if "LITELLM_LOG" not in os.environ:
            for logger in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
                logging.getLogger(logger).setLevel(logging.CRITICAL)
        # for good, since catch_warnings() around a call would meet those of other threads
        warnings.filterwarnings("ignore", module=r"(litellm|openai|pydantic|httpx|aiohttp)(\.|$)")
        return litellm


def _plain(value: Any) -> Any:
    """A copy in lists and dicts, which LiteLLM may change, with no half of a surrogate pair, which can't be sent."""
    return json.loads(json.dumps(value, default=dict, ensure_ascii=False).encode("utf-8", "replace"))


def _read(response: Any, model: str, seconds: float, notes: tuple[str, ...]) -> Reply:
    """What LiteLLM's response says."""
    if not response.choices:
        message = f"{model}: the answer holds no choices; check the address of the API (its _API_BASE)"
        raise ModelError(message)
    choice = response.choices[0]
    said = choice.message
    finish = str(choice.finish_reason or "stop").lower()
    return Reply(
        text=said.content or "",
        finish="tool_calls" if getattr(said, "tool_calls", None) else FINISH.get(finish, finish),
        refusal=str(getattr(said, "refusal", None) or ""),
        reasoning=bool(getattr(said, "reasoning_content", None) or getattr(said, "thinking_blocks", None)),
        usage=_usage(response, model, seconds),
        notes=notes,
    )


def _usage(response: Any, model: str, seconds: float) -> Usage:
    usage = getattr(response, "usage", None)
    tokens_in, tokens_out = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    details = getattr(usage, "prompt_tokens_details", None)
    cached = min(_count(details, "cached_tokens") or _count(usage, "cache_read_input_tokens"), tokens_in)
    cost = getattr(response, "_hidden_params", {}).get("response_cost")
    if not cost:  # LiteLLM's 0 may also mean that it knows nothing
        cost = catalog.lookup(model).cost(tokens_in, tokens_out, cached) if tokens_in or tokens_out else None
    return Usage(1, tokens_in, cached, tokens_out, None if cost is None else float(cost), seconds)


def _count(holder: Any, name: str) -> int:
    value = getattr(holder, name, None)
    return value if isinstance(value, int) else 0
