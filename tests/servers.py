"""Servers on the loopback that speak as OpenAI's and Anthropic's do, and misbehave as told."""

import json
import select
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Body = dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """An HTTP status with the body that the provider would send."""

    status: int
    message: str = "something went wrong"
    kind: str = ""
    """The provider's own word for it: OpenAI's `code`, Anthropic's `type`."""
    param: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """These bytes, whatever they are."""

    body: bytes
    kind: str = "application/json"
    status: int = 200


@dataclass(frozen=True)
class Hang:
    """No answer until the client leaves."""


@dataclass(frozen=True)
class Cut:
    """Half a reply, and then the connection is closed; nothing at all where `sent` is 0."""

    sent: int = 40


Answer = str | Mapping[str, Any] | Failure | Raw | Hang | Cut
"""A text, or what a reply holds: content, finish_reason, refusal, reasoning_content, tool_calls, usage."""
Scripted = Answer | Callable[[Body], Answer]


class Server:
    """Answers requests in order of the script; its last answer is repeated.

    with OpenAIServer(["the first reply", Failure(429), {"content": None}]) as server:
        ...  # server.base, server.requests, server.headers
    """

    path = ""
    """Where requests are sent, below `base`."""

    def __init__(self, script: Sequence[Scripted]) -> None:
        self.script = list(script)
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), _handler(self))
        self._http.errors = []
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def port(self) -> int:
        return self._http.server_port

    @property
    def base(self) -> str:
        """What the client's variable for the API's address is set to."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object = None, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        if kind is None and self._http.errors:
            raise self._http.errors[0]

    def next(self, body: Body, headers: Mapping[str, str]) -> Answer:
        """Remember the request, and say what is answered."""
        with self._lock:
            answer = self.script[min(len(self.requests), len(self.script) - 1)]
            self.requests.append(body)
            self.headers.append({name.lower(): value for name, value in headers.items()})
        return answer(body) if callable(answer) else answer

    def reply(self, said: Mapping[str, Any], body: Body) -> Body:
        """A good answer in the provider's form."""
        raise NotImplementedError

    def problem(self, failure: Failure) -> Body:
        """A bad one."""
        raise NotImplementedError


class OpenAIServer(Server):
    """Speaks the chat completions protocol; OPENAI_API_BASE is its `base`."""

    path = "/chat/completions"

    @property
    def base(self) -> str:
        return f"{super().base}/v1"

    def reply(self, said: Mapping[str, Any], body: Body) -> Body:
        kept = ("content", "refusal", "reasoning_content", "tool_calls")
        message = {"role": "assistant", "content": "", **{name: said[name] for name in kept if name in said}}
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": body.get("model", ""),
            "choices": [{"index": 0, "message": message, "finish_reason": said.get("finish_reason", "stop")}],
            "usage": said.get("usage", usage),
        }

    def problem(self, failure: Failure) -> Body:
        code, param = failure.kind or None, failure.param or None
        return {"error": {"message": failure.message, "type": "invalid_request_error", "param": param, "code": code}}


class AnthropicServer(Server):
    """Speaks the messages protocol; ANTHROPIC_API_BASE is its `base`."""

    path = "/v1/messages"

    def reply(self, said: Mapping[str, Any], body: Body) -> Body:
        content = said.get("content", "")
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", ""),
            "content": content if isinstance(content, list) else [{"type": "text", "text": content}],
            "stop_reason": said.get("finish_reason", "end_turn"),
            "stop_sequence": None,
            "usage": said.get("usage", {"input_tokens": 100, "output_tokens": 20}),
        }

    def problem(self, failure: Failure) -> Body:
        kind = failure.kind or "invalid_request_error"
        return {"type": "error", "error": {"type": kind, "message": failure.message}, "request_id": "req_1"}


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # closing waits for them, so that none outlives its test

    errors: list[BaseException]
    """What went wrong in a script; raised when the server is left."""

    def handle_error(self, *_: object) -> None:
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError):  # a client that has left is no news
            self.errors.append(error)


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not self.path.split("?")[0].endswith(server.path):
                self.put(404, b'{"error": {"message": "no such path"}}')
                return
            match server.next(body, dict(self.headers)):
                case Failure() as failure:
                    self.put(failure.status, json.dumps(server.problem(failure)).encode(), headers=failure.headers)
                case Raw() as raw:
                    self.put(raw.status, raw.body, raw.kind)
                case Hang():
                    self.hang()
                case Cut(sent):
                    if sent:
                        whole = json.dumps(server.reply({"content": "half of this is lost"}, body)).encode()
                        self.put(200, whole[:sent], size=len(whole))
                case said:
                    said = {"content": said} if isinstance(said, str) else said
                    self.put(200, json.dumps(server.reply(said, body)).encode())

        def put(
            self, status: int, body: bytes, kind: str = "application/json", *, size: int | None = None,
            headers: Mapping[str, str] | None = None,
        ) -> None:  # fmt: skip
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body) if size is None else size))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def hang(self) -> None:
            while not server.closing.is_set():
                if select.select([self.connection], [], [], 0.01)[0]:
                    return

        def log_message(self, *_: object) -> None:
            """Tests talk enough."""

    return Handler
