"""Why a model that LiteLLM asked gave no answer, and what can be done about it.

LiteLLM pigeonholes by the provider's words and gets it wrong now and then: a 413 becomes a rate limit, a cut connection
or a web page an internal server error. So the answer is sought in what it was made of: the chain of exceptions below
it, by their names, since more than one HTTP library is in use there.
"""

import difflib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from importlib import import_module
from threading import Event
from typing import Any

from compactor.errors import ModelError, TooLongError

LONGEST_WAIT_S = 120.0
SHOWN = 300

CERTIFICATE = {"SSLCertVerificationError"}
UNSENDABLE = {"LocalProtocolError", "UnicodeEncodeError"}
UNREACHED = {"ConnectError", "ConnectTimeout", "ProxyError", "ConnectionRefusedError", "gaierror"}
SLOW = {"TimeoutException", "Timeout", "ReadTimeoutError", "TimeoutError"}
CUT = {"RemoteProtocolError", "ReadError", "WriteError", "ConnectionResetError", "ServerDisconnectedError"}
MISREAD = {"UnicodeDecodeError", "LookupError", "TypeError", "AttributeError", "JSONDecodeError", "ValidationError"}
VAGUE = {"APIConnectionError", "InternalServerError", "APIError"}
"""What LiteLLM calls a failure that it doesn't know; the status that goes with it means nothing."""

NO_KEY = re.compile(r"missing .{0,30}(credentials|api.?key)|unable to locate credentials|no key is set", re.I)
NO_PROVIDER = re.compile(r"LLM provider not provided", re.I)
NO_COMPLETION = re.compile(r"empty or invalid response|invalid response object|'choices'|unable to get json", re.I)
NO_QUOTA = re.compile(r"insufficient_quota|credit balance is too low|insufficient (credits|balance|funds)", re.I)
EXCEEDED_QUOTA = re.compile(r"exceeded your current quota", re.I)
TOO_LONG = re.compile(
    r"context.?(length|window|size|limit)|(prompt|input|request) (is )?too (long|large)|too many (input )?tokens"
    r"|maximum (input|prompt) length|reduce the length|exceeds the maximum number of tokens",
    re.I,
)
OVER_RATE = re.compile(r"request too large.*\blimit:? (\d+),.*\brequested:? (\d+)", re.I | re.S)
FILTERED = re.compile(r"content.?(filter|policy|management)|safety system|usage policy|responsible.?ai", re.I)
RETRY_IN = re.compile(r"(?:retry in|try again in|retryDelay\W+)\s*(\d+(?:\.\d+)?)\s*(ms|s)\b", re.I)
PARAMETERS = {
    "response_format": re.compile(r"response_format|json_schema|output_(format|config)|structured output|schema", re.I),
    "max_tokens": re.compile(r"max_tokens.*max_completion_tokens", re.I | re.S),
    "tool_choice": re.compile(r"tool_choice", re.I),
}
PREFIX = re.compile(r"^(?:litellm\.\w+:\s*|\w+Error:\s*|\w+(?:Exception|Error)(?: \w+)? - )+")
NOISE = re.compile(r"Traceback \(most recent call last\)|, Received response - <", re.I)
SECRETS = re.compile(
    r"\b(?:(?:sk|pk|rk|gsk|xai|hf)[-_]|AIza)[\w*-]{6,}|(?<=\bbearer )[^\s\"']+"
    r"|(?<=key=)[^\s\"'&]+|(?<=api-key: )\S+|(?<=key\": \")[^\"]+|(?<=key': ')[^']+",
    re.I,
)


class Retry(Enum):
    """Whether asking again can help."""

    NEVER = "never"
    ONCE = "once"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no answer."""

    what: str
    cure: str
    said: str = ""
    """The provider's own words."""
    retry: Retry = Retry.NEVER
    waits_for: str = ""
    after_s: float | None = None
    """How long the provider asks to wait."""
    too_long: bool = False
    parameter: str = ""
    """What of the request the provider doesn't take."""

    def error(self, model: str, tries: int = 1) -> ModelError:
        """What the user gets, on one line and with no secret in it."""
        tried = f", asked {tries} times" if tries > 1 else ""
        said = f": {shortened(self.said)}" if self.said else ""
        text = f"{model}: {self.what}{tried}{said}; {self.cure}"
        return TooLongError(text) if self.too_long else ModelError(text)


def diagnose(error: Exception, model: str, sent: Mapping[str, Any]) -> Failure:
    """What LiteLLM's exception means; `sent` are the parameters that it was called with."""
    chain = tuple(_chain(error))
    response = next((link.response for link in reversed(chain) if type(link).__name__ == "HTTPStatusError"), None)  # type: ignore[attr-defined]
    said, codes = (_words(chain), "") if response is None else _body(response)
    kinds = frozenset(base.__name__ for link in chain for base in type(link).__mro__)
    clues = _Clues(model, sent, chain, kinds, said, codes)
    if response is not None:
        return _refused(clues, response.status_code, response.headers)
    return _unsent(clues) or _unread(clues)


def shortened(text: str) -> str:
    """The text on one line, printable, its secrets masked, its end left off where it is long."""
    line = " ".join("".join(char if char.isprintable() else " " for char in masked(text)).split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"


def masked(text: str) -> str:
    """The text without what looks like a key, and without the keys that the environment holds."""
    for name, value in os.environ.items():
        if name.endswith(("_API_KEY", "_TOKEN", "_SECRET_ACCESS_KEY")) and len(value.strip()) >= 6:
            text = text.replace(value.strip(), "***")
    return SECRETS.sub("***", text)


def check(cancel: Event) -> None:
    """Raise ModelError where the user has cancelled."""
    if cancel.is_set():
        message = "cancelled"
        raise ModelError(message)


@dataclass(frozen=True, slots=True)
class _Clues:
    model: str
    sent: Mapping[str, Any]
    chain: tuple[BaseException, ...]
    """LiteLLM's exception, and those that it was made of."""
    kinds: frozenset[str]
    """The names of their classes."""
    said: str
    codes: str = ""

    @property
    def text(self) -> str:
        return f"{self.codes} {self.said}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _unsent(clues: _Clues) -> Failure | None:
    """A failure before there was an answer; None where it isn't one."""
    kinds, host = clues.kinds, _host(clues.chain)
    if NO_KEY.search(clues.said):
        return Failure("no API key", f"set {_key(clues)}", clues.said)
    if NO_PROVIDER.search(clues.said):
        return Failure("unknown model", f"name it as LiteLLM does, provider/model{_near(clues.model)}")
    if UNSENDABLE & kinds:
        return Failure("the API key can't be sent", f"check {_key(clues)} for a stray line break or letter")
    if CERTIFICATE & kinds:
        return Failure(f"the certificate of {host} isn't trusted", "set SSL_CERT_FILE to the authority's", clues.said)
    if UNREACHED & kinds:
        cure = "check the network and the address of the API"
        return Failure(f"{host} can't be reached", cure, _cause(clues.chain), Retry.WAIT, "a connection")
    if SLOW & kinds:
        what = f"no reply within {clues.sent.get('timeout', 0):g} s"
        return Failure(what, "give more time with --timeout, or ask less with --window")
    if CUT & kinds:
        what = f"the connection to {host} was cut before the reply was whole"
        return Failure(what, "try again", "", Retry.ONCE, "a new connection after a cut one")
    return None


def _unread(clues: _Clues) -> Failure:
    """An answer that LiteLLM can't read, or that it reads as a failure."""
    error = clues.chain[0]
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and type(error).__name__ not in VAGUE:
        return _refused(clues, status, {})
    if MISREAD & clues.kinds or NO_COMPLETION.search(clues.said):
        return Failure("the answer is no chat completion", "check the address of the API (its _API_BASE)", clues.said)
    return Failure("LiteLLM fails", "try another model with -m", clues.said)


def _refused(clues: _Clues, status: int, headers: Mapping[str, str]) -> Failure:
    """The provider said no, with an HTTP status."""
    http, said = f"HTTP {status}", clues.said
    after_s = _after(headers, said)
    exceeded = EXCEEDED_QUOTA.search(said) and after_s is None  # Gemini words its rate limits so, with a time to wait
    if status == 402 or NO_QUOTA.search(clues.text) or (status == 429 and exceeded):
        return Failure(f"no quota left ({http})", "top up the account, or use another model with -m", said)
    if status == 401:
        return Failure(f"the API key isn't accepted ({http})", f"set {_key(clues)} to a valid key", said)
    if status == 403:
        return Failure(f"not permitted ({http})", f"check what the key in {_key(clues)} may use", said)
    if status == 404:
        cure = f"name the model as LiteLLM does, provider/model{_near(clues.model)}"
        return Failure(f"not found ({http})", cure, said)
    if status == 429 and not _over_rate(said):
        return _waiting(f"too many requests ({http})", said, after_s, "a rate limit")
    if status in (413, 429) or "ContextWindowExceededError" in clues.kinds or TOO_LONG.search(clues.text):
        return Failure(f"the request is too long ({http})", "ask less with --window", said, too_long=True)
    if status >= 500 or status == 408:
        return _waiting(f"the server fails ({http})", said, after_s, "a server that failed")
    if FILTERED.search(clues.text):
        return Failure(f"refused by a content filter ({http})", "try another model with -m", said)
    named = (name for name, complaint in PARAMETERS.items() if name in clues.sent and complaint.search(clues.text))
    cure = "try another model with -m"
    return Failure(f"the request isn't accepted ({http})", cure, said, parameter=next(named, ""))


def _waiting(what: str, said: str, after_s: float | None, waits_for: str) -> Failure:
    """Waiting can cure it, if not for too long."""
    cure = "try again later, or another model with -m"
    if after_s is not None and after_s > LONGEST_WAIT_S:
        wish = f"it asks to wait {after_s:.0f} s, and {LONGEST_WAIT_S:.0f} s is the most"
        return Failure(f"{what}, {wish}", cure, said)
    return Failure(what, cure, said, Retry.WAIT, waits_for, after_s)


def _over_rate(said: str) -> bool:
    """Whether one request asks for more than a whole minute allows, which waiting can't cure."""
    found = OVER_RATE.search(said)
    return found is not None and int(found[2]) > int(found[1])


def _after(headers: Mapping[str, str], said: str) -> float | None:
    """How many seconds the provider asks to wait, by its headers or its words; None where it doesn't say."""
    with suppress(KeyError, ValueError):
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    with suppress(KeyError, ValueError):
        return max(0.0, float(headers["retry-after"]))
    with suppress(KeyError, ValueError):
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    found = RETRY_IN.search(said)
    return float(found[1]) / (1000 if found[2].lower() == "ms" else 1) if found else None


def _body(response: Any) -> tuple[str, str]:
    """What an answer says went wrong, and its codes."""
    text = ""
    with suppress(RuntimeError):  # a stream that was never read
        text = response.text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text, ""
    value = value[0] if isinstance(value, list) and value else value
    error = value.get("error", value) if isinstance(value, dict) else value
    if not isinstance(error, dict):
        return str(error), ""
    codes = " ".join(str(error[name]) for name in ("code", "type", "param", "status") if error.get(name))
    delay = RETRY_IN.search(text)
    said = str(error.get("message") or error.get("detail") or text)
    return (f"{said} ({delay[0]})" if delay and delay[0] not in said else said), codes


def _words(chain: tuple[BaseException, ...]) -> str:
    """What the outermost exceptions say, without LiteLLM's wrappings."""
    for link in chain:
        text = PREFIX.sub("", NOISE.split(str(link))[0]).strip()
        if text:
            return text
    return next((text for link in reversed(chain) if (text := str(getattr(link, "message", "")))), "")


def _cause(chain: tuple[BaseException, ...]) -> str:
    return next((str(link) for link in reversed(chain) if isinstance(link, OSError)), "")


def _host(chain: tuple[BaseException, ...]) -> str:
    """Where the request went; LiteLLM's own exceptions hold a made-up address."""
    for link in reversed(chain):
        with suppress(RuntimeError, AttributeError):
            if not type(link).__module__.startswith("litellm"):
                url = link.request.url  # type: ignore[attr-defined]
                return f"{url.host}:{url.port}" if url.port else str(url.host)
    return "the server"


def _key(clues: _Clues) -> str:
    """The environment variables that hold the key."""
    missing = import_module("litellm").validate_environment(clues.model)["missing_keys"]
    provider = str(getattr(clues.chain[0], "llm_provider", "") or clues.model.partition("/")[0])
    return ", ".join(missing) or f"{re.sub('[^A-Z0-9]', '_', provider.upper())}_API_KEY"


def _near(model: str) -> str:
    """The names that LiteLLM knows and that look like this one."""
    known = import_module("litellm").model_cost
    for name in (model, model.rpartition("/")[2]):
        near = difflib.get_close_matches(name, known, 3, 0.75)
        if near and name not in near:
            return f" (did you mean {' or '.join(near)}?)"
    return ""
