"""Models: what is sent, how answers are read, what each failure says, what is asked again."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from servers import AnthropicServer, Cut, Failure, Hang, OpenAIServer, Raw, Scripted

from compactor.errors import InputError, ModelError, TooLongError, UsageError
from compactor.exchange import Model, Reply, Request, Usage
from compactor.failures import masked, shortened
from compactor.model import model_named

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
TOOLS = ({"type": "function", "function": {"name": "ls", "parameters": {"type": "object", "properties": {}}}},)
ASKED = Request(({"role": "user", "content": "What now?"},), max_tokens=50)
KEY = "sk-abcdefghijklmnop1234"


def ask(model: Model, request: Request = ASKED) -> Reply:
    return model.complete(request)


def failure(model: Model, request: Request = ASKED) -> str:
    """The message of a failure, after looking at what holds for all of them."""
    with pytest.raises(ModelError) as caught:
        model.complete(request)
    text = str(caught.value)
    assert "\n" not in text
    assert "Traceback" not in text
    assert len(text) < 700
    return text


@pytest.fixture(autouse=True)
def _address(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reaches a server but its own."""
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-abcdefgh")


Openai = Callable[..., OpenAIServer]
Anthropic = Callable[..., AnthropicServer]


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Openai:
    """Starts a server with a script, and points the client to it."""

    def start(*script: Scripted) -> OpenAIServer:
        server = OpenAIServer(script)
        server.__enter__()
        request.addfinalizer(lambda: server.__exit__())
        monkeypatch.setenv("OPENAI_API_BASE", server.base)
        return server

    return start


@pytest.fixture
def anthropic(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Anthropic:
    def start(*script: Scripted) -> AnthropicServer:
        server = AnthropicServer(script)
        server.__enter__()
        request.addfinalizer(lambda: server.__exit__())
        monkeypatch.setenv("ANTHROPIC_API_BASE", server.base)
        return server

    return start


def litellm_model(name: str = "gpt-4o", waits: list[float] | None = None, **named: Any) -> Model:
    """A model that notes its waits and doesn't wait."""
    return model_named(name, wait=(list[float]() if waits is None else waits).append, **named)


# what is sent


def test_what_is_sent_and_what_comes_back(openai: Openai) -> None:
    server = openai("a reply")
    reply = ask(litellm_model())
    assert (reply.text, reply.finish, reply.refusal, reply.reasoning, reply.notes) == ("a reply", "stop", "", False, ())
    assert (reply.usage.calls, reply.usage.tokens_in, reply.usage.tokens_out) == (1, 100, 20)
    assert reply.usage.cost == pytest.approx(100 * 2.5e-6 + 20 * 1e-5)
    assert 0 < reply.usage.seconds < 60
    (body,) = server.requests
    assert body == {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "What now?"}],
        "max_tokens": 50,
    }
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("name", ["o3", "gpt-5"])
def test_reasoning_models_get_the_limit_by_its_other_name(openai: Openai, name: str) -> None:
    server = openai("a reply")
    ask(litellm_model(name))
    assert server.requests[0]["max_completion_tokens"] == 50
    assert "max_tokens" not in server.requests[0]


def test_a_schema_is_sent_where_the_model_takes_one(openai: Openai) -> None:
    server = openai('{"a": "b"}')
    asked = Request(ASKED.messages, 50, schema=SCHEMA)
    ask(litellm_model("gpt-4o"), asked)
    ask(litellm_model("openai/one-of-ours"), asked)
    ask(litellm_model("gpt-4o"), ASKED)
    sent = server.requests[0]["response_format"]
    assert sent == {"type": "json_schema", "json_schema": {"name": "update", "strict": True, "schema": SCHEMA}}
    assert "response_format" not in server.requests[1]
    assert "response_format" not in server.requests[2]


def test_tools_are_sent_with_the_word_to_call_none(openai: Openai) -> None:
    server = openai("a reply")
    ask(litellm_model(), Request(ASKED.messages, 50, tools=TOOLS))
    assert server.requests[0]["tools"] == list(TOOLS)
    assert server.requests[0]["tool_choice"] == "none"


def test_half_a_surrogate_pair_can_be_sent(openai: Openai) -> None:
    server = openai("a reply")
    ask(litellm_model(), Request(({"role": "user", "content": "cut \ud83d here"},), 50))
    assert server.requests[0]["messages"][0]["content"] == "cut ? here"


def test_the_anthropic_protocol(anthropic: Anthropic) -> None:
    server = anthropic("a reply")
    reply = ask(litellm_model("anthropic/claude-sonnet-4-5"), Request(ASKED.messages, 50, schema=SCHEMA, tools=TOOLS))
    assert (reply.text, reply.finish, reply.usage.tokens_in, reply.usage.tokens_out) == ("a reply", "stop", 100, 20)
    assert reply.usage.cost == pytest.approx(100 * 3e-6 + 20 * 1.5e-5)
    assert server.requests[0]["max_tokens"] == 50
    assert server.requests[0]["tool_choice"] == {"type": "none"}
    assert "temperature" not in server.requests[0]


# how answers are read


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"content": "half", "finish_reason": "length"}, Reply("half", "length")),
        ({"content": "half", "finish_reason": "max_tokens"}, Reply("half", "length")),
        ({"content": "", "finish_reason": "content_filter"}, Reply("", "content_filter")),
        ({"content": None, "refusal": "I won't."}, Reply("", "stop", "I won't.")),
        ({"content": "x", "reasoning_content": "hm"}, Reply("x", reasoning=True)),
        ({"content": "<think>hm</think>x"}, Reply("x", reasoning=True)),
        ({"content": "x", "finish_reason": "function_call"}, Reply("x", "tool_calls")),
        ({"content": None}, Reply("")),
        ({"content": ""}, Reply("")),
        (
            {
                "content": None,
                "finish_reason": "stop",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
            },
            Reply("", "tool_calls"),
        ),
    ],
)
def test_replies_of_all_kinds(openai: Openai, said: dict[str, Any], expected: Reply) -> None:
    openai(said)
    reply = ask(litellm_model())
    assert (reply.text, reply.finish, reply.refusal, reply.reasoning) == (
        expected.text, expected.finish, expected.refusal, expected.reasoning,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("said", "finish", "text", "reasoning"),
    [
        ({"content": [], "finish_reason": "refusal"}, "content_filter", "", False),
        ({"content": "half", "finish_reason": "max_tokens"}, "length", "half", False),
        (
            {"content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "x"}]},
            "stop",
            "x",
            True,
        ),
    ],
)
def test_anthropic_replies(
    anthropic: Anthropic, said: dict[str, Any], finish: str, text: str, *, reasoning: bool
) -> None:
    anthropic(said)
    reply = ask(litellm_model("claude-sonnet-4-5"))
    assert (reply.finish, reply.text, reply.reasoning) == (finish, text, reasoning)


def test_what_the_provider_read_from_its_cache_is_cheaper(openai: Openai, anthropic: Anthropic) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    openai({"content": "x", "usage": {**usage, "prompt_tokens_details": {"cached_tokens": 80}}})
    taken = ask(litellm_model()).usage
    assert (taken.tokens_in, taken.cached, taken.tokens_out) == (100, 80, 10)
    assert taken.cost == pytest.approx(20 * 2.5e-6 + 80 * 1.25e-6 + 10 * 1e-5)
    anthropic({"content": "x", "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7}})
    taken = ask(litellm_model("claude-sonnet-4-5")).usage
    assert (taken.tokens_in, taken.cached, taken.tokens_out) == (100, 90, 7)
    assert taken.cost == pytest.approx(10 * 3e-6 + 90 * 3e-7 + 7 * 1.5e-5)


def test_an_unknown_price_is_not_zero(openai: Openai) -> None:
    openai("x", {"content": "x", "usage": None})
    assert ask(litellm_model("openai/one-of-ours")).usage.cost is None
    without_usage = ask(litellm_model("gpt-4o")).usage
    assert (without_usage.tokens_in, without_usage.cost) == (0, None)


def test_a_huge_reply(openai: Openai) -> None:
    openai("word " * 1_000_000)
    assert len(ask(litellm_model()).text) == 5_000_000


@pytest.mark.parametrize(
    "answer",
    [
        Raw(b"<html><body>Please log in</body></html>", "text/html"),
        Raw(b"upstream connect error or disconnect/reset before headers", "text/plain"),
        Raw(b""),
        Raw(b"[1]"),
        Raw(b'{"id": "1", "choices": [{"mess'),
        Raw(b'{"id": "1", "object": "chat.completion"}'),
        Raw(b'{"id": "1", "object": "chat.completion", "choices": []}'),
        Raw(b'{"id": "1", "object": "chat.completion", "choices": null}'),
        Raw(b'{"id": "1", "choices": [{"index": 0, "message": null, "finish_reason": "stop"}]}'),
        Raw(b'{"id": "1", "choices": [{"message": {"content": "\xff\xfe"}, "finish_reason": "stop", "index": 0}]}'),
        {"content": [{"type": "text", "text": "a part"}]},
        {"content": 5},
    ],
    ids=str,
)
def test_an_answer_that_is_no_completion_is_no_reply(openai: Openai, answer: Scripted) -> None:
    server = openai(answer)
    text = failure(litellm_model())
    assert re.match("gpt-4o: the answer (is no chat completion|holds no choices).*; check the address of the API", text)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [Raw(b"<html>Please log in</html>", "text/html"), Raw(b"[1]"), Raw(b"{}"), Raw(b'{"content": "\xff"}')],
    ids=str,
)
def test_an_answer_that_is_no_message_is_no_reply(anthropic: Anthropic, answer: Scripted) -> None:
    server = anthropic(answer)
    text = failure(litellm_model("claude-sonnet-4-5"))
    assert "the answer is no chat completion" in text
    assert len(server.requests) == 1


# what is asked otherwise


def test_without_structured_output_where_the_provider_refuses_it(openai: Openai) -> None:
    complaint = "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
    server = openai(Failure(400, complaint, param="response_format"), "first", "second")
    model, asked = litellm_model(), Request(ASKED.messages, 50, schema=SCHEMA)
    first, second = ask(model, asked), ask(model, asked)
    assert (first.text, second.text) == ("first", "second")
    assert first.notes == ("asked without structured output: the provider doesn't take it",)
    assert second.notes == ()
    assert ["response_format" in body for body in server.requests] == [True, False, False]


def test_a_complaint_about_the_schema_that_stays_is_a_failure(openai: Openai) -> None:
    server = openai(Failure(400, "Invalid schema for response_format 'update': too deep", "invalid_json_schema"))
    text = failure(litellm_model(), Request(ASKED.messages, 50, schema=SCHEMA))
    assert "the request isn't accepted (HTTP 400): Invalid schema for response_format 'update': too deep" in text
    assert len(server.requests) == 2


def test_with_the_other_limit_where_the_provider_wants_it(openai: Openai) -> None:
    complaint = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
    server = openai(Failure(400, complaint, "unsupported_parameter", param="max_tokens"), "x", "x")
    model = litellm_model("openai/one-of-ours")
    assert "max_completion_tokens" in ask(model).notes[0]
    assert ask(model).notes == ()
    limits = [(body.get("max_tokens"), body.get("max_completion_tokens")) for body in server.requests]
    assert limits == [(50, None), (None, 50), (None, 50)]


def test_without_tool_choice_where_the_provider_refuses_it(openai: Openai) -> None:
    server = openai(Failure(400, '"none" is not a supported tool_choice'), "x")
    assert "tool_choice" in ask(litellm_model(), Request(ASKED.messages, 50, tools=TOOLS)).notes[0]
    assert "tool_choice" not in server.requests[1]
    assert "tools" in server.requests[1]


# failures that stay


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            Failure(401, "Incorrect API key provided: sk-abc***1234.", "invalid_api_key"),
            "the API key isn't accepted (HTTP 401): Incorrect API key provided: ***.; set OPENAI_API_KEY to a",
        ),
        (
            Failure(403, "Project has no access to model"),
            "not permitted (HTTP 403): Project has no access to model; check what the key in OPENAI_API_KEY may use",
        ),
        (Failure(402, "Payment required"), "no quota left (HTTP 402): Payment required; top up the account"),
        (
            Failure(429, "You exceeded your current quota, please check your plan.", "insufficient_quota"),
            "no quota left (HTTP 429): You exceeded your current quota, please check your plan.; top up the account",
        ),
        (
            Failure(400, "Your request was rejected as a result of our safety system.", "content_policy_violation"),
            "refused by a content filter (HTTP 400)",
        ),
        (
            Failure(400, "The prompt triggered Azure OpenAI's content management policy.", "content_filter"),
            "refused by a content filter (HTTP 400)",
        ),
        (
            Failure(400, "max_tokens is too large: 50000. This model supports at most 16384 completion tokens."),
            "the request isn't accepted (HTTP 400): max_tokens is too large",
        ),
        (Failure(422, "unprocessable"), "the request isn't accepted (HTTP 422): unprocessable"),
        (Raw(b"<html>no</html>", "text/html", 400), "the request isn't accepted (HTTP 400): <html>no</html>"),
        (Raw(b"\xff\xfe", "text/html", 400), "the request isn't accepted (HTTP 400)"),
        (Raw(b'{"detail": "Not here"}', status=404), "not found (HTTP 404): Not here"),
        (Raw(b'{"error": "model not loaded"}'), "the request isn't accepted (HTTP 422)"),
        (Failure(400, "x" * 5000), "x" * 200),
    ],
)
def test_failures_that_waiting_cannot_cure(openai: Openai, answer: Scripted, expected: str) -> None:
    server = openai(answer)
    text = failure(litellm_model())
    assert text.startswith("gpt-4o: ")
    assert expected in text
    assert len(server.requests) == 1


def test_an_empty_anthropic_account(anthropic: Anthropic) -> None:
    server = anthropic(Failure(400, "Your credit balance is too low to access the Anthropic API."))
    assert "no quota left (HTTP 400): Your credit balance is too low" in failure(litellm_model("claude-sonnet-4-5"))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("name", "variable", "asked_for"),
    [("gpt-4o", "OPENAI_API_KEY", "OPENAI_API_KEY"), ("claude-sonnet-4-5", "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY")],
)
def test_no_key(monkeypatch: pytest.MonkeyPatch, name: str, variable: str, asked_for: str) -> None:
    monkeypatch.delenv(variable)
    assert re.match(f"{name}: no API key: .*; set {asked_for}$", failure(litellm_model(name)))


def test_no_key_of_another_provider() -> None:
    assert "no API key" in (text := failure(litellm_model("gemini/gemini-2.5-pro")))
    assert text.endswith("set GOOGLE_API_KEY, GEMINI_API_KEY")


def test_a_key_that_cannot_be_sent(openai: Openai, monkeypatch: pytest.MonkeyPatch) -> None:
    openai("x")
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\nrest")
    text = failure(litellm_model())
    assert "the API key can't be sent; check OPENAI_API_KEY" in text
    assert KEY not in text


@pytest.mark.parametrize(("name", "near"), [("gpt4o", "gpt-4o"), ("no/such-thing-at-all", "")])
def test_an_unknown_model(name: str, near: str) -> None:
    text = failure(litellm_model(name))
    assert f"{name}: unknown model; name it as LiteLLM does, provider/model" in text
    assert near in text
    assert ("did you mean" in text) == bool(near)


def test_a_model_that_the_provider_does_not_have(openai: Openai) -> None:
    openai(Failure(404, "The model `o3-minni` does not exist", "model_not_found"))
    text = failure(litellm_model("openai/o3-minni"))
    assert "not found (HTTP 404): The model `o3-minni` does not exist; name the model as LiteLLM does" in text
    assert "o3-mini" in text


def test_keys_are_not_shown(openai: Openai, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "abc-unusual-key")
    monkeypatch.setenv("OTHER_API_KEY", "another secret")
    leak = f"Bearer abcdef123 , key abc-unusual-key, {KEY}, https://x.y/?key=hidden&z=1, another secret"
    openai(Failure(400, leak))
    text = failure(litellm_model())
    assert "Bearer *** , key ***, ***, https://x.y/?key=***&z=1, ***" in text


def test_ordinary_words_are_shown() -> None:
    text = "a skeleton, task-forces, ask-me-anything, the key: value, keys=2, sk-1"
    assert masked(text) == text
    assert shortened("a\n\x1b[31mb") == "a [31mb"


# too long


@pytest.mark.parametrize(
    "answer",
    [
        Failure(400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded"),
        Failure(400, "Input tokens exceed the configured limit of 272000 tokens.", "context_length_exceeded"),
        Failure(500, "the request exceeds the available context size"),
        Failure(413, "Request too large"),
        Failure(429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000."),
    ],
)
def test_a_request_that_is_too_long(openai: Openai, answer: Scripted) -> None:
    server = openai(answer)
    with pytest.raises(TooLongError, match=r"the request is too long .*; ask less with --window"):
        ask(litellm_model())
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [Failure(400, "prompt is too long: 210000 tokens > 200000 maximum"), Failure(413, "x", "request_too_large")],
)
def test_a_request_that_is_too_long_for_anthropic(anthropic: Anthropic, answer: Scripted) -> None:
    server = anthropic(answer)
    with pytest.raises(TooLongError, match="the request is too long"):
        ask(litellm_model("claude-sonnet-4-5"))
    assert len(server.requests) == 1


def test_a_rate_in_tokens_is_no_length(openai: Openai) -> None:
    rate = Failure(429, "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000.")
    server = openai(rate, "x")
    assert ask(litellm_model()).text == "x"
    assert len(server.requests) == 2


# asking again


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_what_waiting_can_cure_is_asked_again(openai: Openai, status: int) -> None:
    server, waits = openai(Failure(status, "busy"), Failure(status, "busy"), "x"), list[float]()
    reply = ask(litellm_model(waits=waits))
    assert reply.text == "x"
    assert len(server.requests) == 3
    assert 1 <= waits[0] <= 2 <= waits[1] <= 3
    assert re.fullmatch(r"waited [\d.]+ s for a (rate limit|server that failed), 2 times", reply.notes[0])


@pytest.mark.parametrize("status", [429, 529])
def test_anthropic_is_asked_again(anthropic: Anthropic, status: int) -> None:
    server, waits = (
        anthropic(Failure(status, "busy", "overloaded_error", headers={"retry-after": "3"}), "x"),
        list[float](),
    )
    assert ask(litellm_model("claude-sonnet-4-5", waits)).text == "x"
    assert len(server.requests) == 2
    assert waits == [3.0]


def test_a_failure_within_a_good_status(openai: Openai) -> None:
    """Gateways answer 200 before they know."""
    server = openai(Raw(b'{"error": {"message": "upstream overloaded", "code": 502}}'))
    assert "the server fails (HTTP 502), asked 2 times: upstream overloaded;" in failure(litellm_model(attempts=2))
    assert len(server.requests) == 2


def test_giving_up(openai: Openai) -> None:
    server, waits = openai(Failure(503, "busy")), list[float]()
    text = failure(litellm_model(waits=waits, attempts=4))
    assert text == "gpt-4o: the server fails (HTTP 503), asked 4 times: busy; try again later, or another model with -m"
    assert (len(server.requests), len(waits)) == (4, 3)


def test_one_attempt_is_one(openai: Openai) -> None:
    server = openai(Failure(503, "busy"))
    failure(litellm_model(attempts=1))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "message", "expected"),
    [
        ({"retry-after": "2"}, "busy", 2),
        ({"retry-after-ms": "1500", "retry-after": "9"}, "busy", 1.5),
        ({}, "You exceeded your current quota. Please retry in 7.5s.", 7.5),
        ({}, "Rate limit reached. Please try again in 250ms.", 0.25),
    ],
)
def test_the_provider_says_how_long(openai: Openai, headers: dict[str, str], message: str, expected: float) -> None:
    waits: list[float] = []
    openai(Failure(429, message, headers=headers), "x")
    reply = ask(litellm_model(waits=waits))
    assert waits == [expected]
    assert reply.notes[0].startswith("waited ")
    assert reply.notes[0].endswith(" s for a rate limit")


def test_the_provider_says_when(openai: Openai) -> None:
    waits: list[float] = []
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    openai(Failure(429, "busy", headers={"retry-after": date}), "x")
    ask(litellm_model(waits=waits))
    assert 20 < waits[0] <= 60


def test_a_wait_in_the_past_or_none_is_not_taken_literally(openai: Openai) -> None:
    waits: list[float] = []
    openai(*(Failure(429, "busy", headers={"retry-after": word}) for word in ("0", "soon", "-5")), "x")
    ask(litellm_model(waits=waits))
    assert min(waits) >= 1


def test_a_wait_that_is_too_long(openai: Openai) -> None:
    server = openai(Failure(429, "busy", headers={"retry-after": "300"}))
    assert "too many requests (HTTP 429), it asks to wait 300 s, and 120 s is the most: busy" in failure(
        litellm_model()
    )
    assert len(server.requests) == 1


def test_a_slow_provider_is_not_asked_again(openai: Openai, anthropic: Anthropic) -> None:
    for server, name in ((openai(Hang()), "gpt-4o"), (anthropic(Hang()), "claude-sonnet-4-5")):
        text = failure(litellm_model(name, timeout_s=0.2))
        assert text == f"{name}: no reply within 0.2 s; give more time with --timeout, or ask less with --window"
        assert len(server.requests) == 1


@pytest.mark.parametrize("answer", [Cut(), Cut(0)])
def test_a_cut_connection_is_tried_once_more(openai: Openai, anthropic: Anthropic, answer: Cut) -> None:
    for start, name in ((openai, "gpt-4o"), (anthropic, "claude-sonnet-4-5")):
        start(answer, "whole")
        reply = ask(litellm_model(name))
        assert reply.text == "whole"
        assert "for a new connection after a cut one" in reply.notes[0]
        server = start(answer)
        text = failure(litellm_model(name))
        assert f"the connection to 127.0.0.1:{server.port} was cut before the reply was whole, asked 2 times" in text
        assert len(server.requests) == 2


@pytest.mark.parametrize("name", ["gpt-4o", "claude-sonnet-4-5"])
def test_no_server(openai: Openai, anthropic: Anthropic, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with OpenAIServer(["x"]) as server:
        gone = server.port
    for variable in ("OPENAI_API_BASE", "ANTHROPIC_API_BASE"):
        monkeypatch.setenv(variable, f"http://127.0.0.1:{gone}")
    text = failure(litellm_model(name, attempts=2))
    assert f"{name}: 127.0.0.1:{gone} can't be reached, asked 2 times: [" in text
    assert text.endswith("check the network and the address of the API")


def test_cancelling(openai: Openai) -> None:
    server, cancel = openai(Failure(503, "busy")), threading.Event()
    model = model_named("gpt-4o", cancel=cancel)
    threading.Timer(0.1, cancel.set).start()
    started = time.monotonic()
    assert failure(model) == "cancelled"
    assert time.monotonic() - started < 0.9
    assert failure(model) == "cancelled"
    assert len(server.requests) == 1


def test_many_threads_ask_one_model(openai: Openai) -> None:
    openai(lambda body: body["messages"][0]["content"].upper())
    model, replies = litellm_model(), dict[str, str]()

    def one(word: str) -> None:
        replies[word] = ask(model, Request(({"role": "user", "content": word},), 50)).text

    words = [f"word{number}" for number in range(12)]
    threads = [threading.Thread(target=one, args=(word,)) for word in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == {word: word.upper() for word in words}


def test_litellm_keeps_quiet(openai: Openai, anthropic: Anthropic, capfd: pytest.CaptureFixture[str]) -> None:
    openai(Failure(500, "busy"), {"content": "x", "finish_reason": "unheard of"})
    ask(litellm_model())
    failure(litellm_model("nosuchmodel"))
    anthropic("x")
    ask(litellm_model("claude-sonnet-4-5"))
    assert capfd.readouterr() == ("", "")


def test_the_folder_does_not_say_which_server_is_asked(openai: Openai, tmp_path: Path) -> None:
    server = openai("from the right one")
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=http://127.0.0.1:9/v1\n")
    code = (
        "from compactor.exchange import Request\nfrom compactor.model import model_named\n"
        "print(model_named('gpt-4o').complete(Request(({'role': 'user', 'content': 'x'},), 5)).text)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("from the right one\n", "")
    assert len(server.requests) == 1


# names


@pytest.mark.parametrize("name", ["", "  ", "cmd:", "cmd: ", "scripted:", "cmd:'open"])
def test_names_that_name_nothing(name: str) -> None:
    with pytest.raises(UsageError):
        model_named(name)


# a script


def script(tmp_path: Path, *lines: object) -> Model:
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(line if isinstance(line, str) else f"{json.dumps(line)}\n" for line in lines))
    return model_named(f"scripted:{path}")


def test_a_command_may_take_its_time_before_it_reads(tmp_path: Path) -> None:
    """What a pipe doesn't hold waits for it."""
    slow = tmp_path / "slow.py"
    slow.write_text("import sys, time; time.sleep(1); print(len(sys.stdin.read()))")
    long = Request(({"role": "user", "content": "words " * 60_000},), 100)
    assert model_named(f"cmd:{sys.executable} {slow}", timeout_s=20).complete(long).text.strip() == "360000"


def test_a_script_is_read_from_top_to_bottom(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "cached_tokens": 1, "cost": 0.5}
    model = script(
        tmp_path,
        '"text"\n\n',
        {"content": "x", "finish_reason": "length", "refusal": "no", "usage": usage},
        '{"facts":  []}\n',
        {"error": "busy", "status": 503},
        {"error": "too long", "status": 413},
    )
    assert ask(model) == Reply("text", usage=Usage(calls=1))
    assert ask(model) == Reply("x", "length", "no", usage=Usage(1, 5, 1, 2, 0.5))
    assert ask(model) == Reply('{"facts":  []}', usage=Usage(calls=1))
    assert "replies.jsonl:5: busy; as the script says" in failure(model)
    with pytest.raises(TooLongError, match="jsonl:6: too long"):
        ask(model)
    model.accepted(ASKED)
    assert "reply 6 is asked for, the file holds 5; add a line" in failure(model)
    assert model.name.startswith("scripted:")


@pytest.mark.parametrize(
    "line",
    ["{", "5", "null", "[]", '{"content": {}}', '{"content": "x", "usage": 5}', '{"usage": {"prompt_tokens": "x"}}',
     '{"usage": {"cost": -1}}', "[" * 100_000],
)  # fmt: skip
def test_a_bad_line_in_a_script(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match=r"replies\.jsonl:2: .*; write each reply on one line"):
        script(tmp_path, '"good"\n', line)


def test_a_script_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing"):
        model_named(f"scripted:{tmp_path}/missing")


def test_threads_get_a_reply_each(tmp_path: Path) -> None:
    model, got = script(tmp_path, *(f'"{number}"\n' for number in range(50))), list[str]()
    threads = [threading.Thread(target=lambda: got.append(ask(model).text)) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got, key=int) == [str(number) for number in range(50)]


# a command


def python(tmp_path: Path, code: str, **named: Any) -> Model:
    """A command that runs this code."""
    path = tmp_path / "a program.py"
    path.write_text(f"import os, sys, time\n{code}\n")
    return model_named(f"cmd:'{sys.executable}' -I -S '{path}'", **named)


def spoken(*contents: object) -> Request:
    return Request(tuple({"role": "user", "content": content} for content in contents), 50)


def test_a_command_reads_the_prompt_and_prints_the_reply(tmp_path: Path) -> None:
    model = python(tmp_path, "sys.stdout.buffer.write(sys.stdin.buffer.read())")
    parts = [{"type": "text", "text": "a part"}, {"type": "image"}, {"type": "text", "text": "another"}]
    reply = ask(model, spoken("Größe \ud83d", None, parts))
    assert reply.text == "Größe ?\n\n\n\na part\nanother"
    assert (reply.usage.calls, reply.usage.tokens_in, reply.usage.cost) == (1, 0, None)
    assert reply.usage.seconds > 0
    model.accepted(ASKED)


@pytest.mark.parametrize("code", ["print('x')", "os.close(0); time.sleep(0.1); print('x')"])
def test_a_command_need_not_read(tmp_path: Path, code: str) -> None:
    assert ask(python(tmp_path, code), spoken("y" * 10**6)).text == "x\n"


def test_a_command_may_write_before_it_reads(tmp_path: Path) -> None:
    model = python(tmp_path, "sys.stderr.write('e' * 10**6); sys.stdout.write('o' * 10**6); sys.stdin.read()")
    assert len(ask(model, spoken("y" * 10**6)).text) == 10**6


def test_a_command_that_fails(tmp_path: Path) -> None:
    code = f"[print('line', n, file=sys.stderr) for n in range(9)]; print('key={KEY}', file=sys.stderr); sys.exit(3)"
    text = failure(python(tmp_path, code))
    assert "failed with exit code 3: line 7 / line 8 / key=***; run it by hand to see why" in text


def test_a_command_that_prints_what_is_no_text(tmp_path: Path) -> None:
    text = failure(python(tmp_path, "sys.stdout.buffer.write(b'ab\\xff')"))
    assert "its output isn't UTF-8 (byte 2); have it print UTF-8" in text


def test_a_command_that_cannot_be_run(tmp_path: Path) -> None:
    text = failure(model_named("cmd:no-such-program --print"))
    assert re.search(r"'no-such-program' can't be run \(.*\); is it installed, and on PATH\?", text)
    plain = tmp_path / "plain"
    plain.write_text("x")
    assert "can't be run (" in failure(model_named(f"cmd:{plain}"))


def gone(pid: int) -> bool:
    """Whether no process of this number is running."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


FAMILY = """
child = os.fork()
if child:
    open(sys.argv[0] + '.pid', 'w').write(str(child))
time.sleep(60)
"""

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")


@linux
def test_a_slow_command_is_ended_with_its_children(tmp_path: Path) -> None:
    text = failure(python(tmp_path, FAMILY, timeout_s=0.3), spoken("y" * 10**6))
    assert "no reply within 0.3 s; give more time with --timeout, or ask less with --window" in text
    assert gone(int((tmp_path / "a program.py.pid").read_text()))


@linux
def test_cancelling_a_command(tmp_path: Path) -> None:
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    assert failure(python(tmp_path, FAMILY, cancel=cancel)) == "cancelled"
    assert gone(int((tmp_path / "a program.py.pid").read_text()))


@linux
def test_an_interrupt_ends_the_command(tmp_path: Path) -> None:
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        ask(python(tmp_path, FAMILY))
    assert gone(int((tmp_path / "a program.py.pid").read_text()))


def test_a_command_that_writes_without_end(tmp_path: Path) -> None:
    text = failure(python(tmp_path, "while True: sys.stdout.write('y' * 10**5)"))
    assert "ended, as it wrote more than 16,777,216 bytes; have it print the reply only" in text
