"""A model on the loopback that answers real agent clients with a script and keeps what they sent.

It speaks as much of Anthropic's Messages, OpenAI's Chat Completions and Responses and Gemini's generateContent, each
streamed or whole, as the clients need to hold a session.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
ASIDE = {"text": "{}"}
"""What a request gets that offers no tools: clients ask for titles and the like."""


@dataclass(frozen=True)
class Turn:
    """What the model says, and the calls it makes, by name with their arguments."""

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()


@dataclass
class Model:
    """A server with a script; its last turn is repeated."""

    turns: Sequence[Turn]
    sent: list[Json] = field(default_factory=list)
    """The requests that offered tools, or continued a chat, in order."""
    given: int = 0

    def __post_init__(self) -> None:
        self.lock = threading.Lock()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def turn(self, body: Json) -> tuple[int, Turn]:
        with self.lock:
            number = self.given
            self.given += 1
            self.sent.append(body)
        return number, self.turns[min(number, len(self.turns) - 1)]

    def play(self, turns: Sequence[Turn]) -> None:
        """Forget what was sent, and answer with these turns from now on."""
        with self.lock:
            self.turns, self.given, self.sent = turns, 0, []


def _handler(model: Model) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

        def do_HEAD(self) -> None:
            self._whole({})

        def do_GET(self) -> None:
            self._whole({"object": "list", "data": [{"id": "mock", "object": "model"}]})

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.loads(raw or b"{}")
            path = self.path.split("?")[0]
            if path.endswith("/count_tokens") or "countTokens" in path:
                self._whole({"input_tokens": len(raw) // 4, "totalTokens": len(raw) // 4})
            elif path.endswith("/messages"):
                self._answer(body, len(raw) // 4, _anthropic)
            elif path.endswith("/responses"):
                self._answer(body, len(raw) // 4, _responses)
            elif path.endswith("/chat/completions"):
                self._answer(body, len(raw) // 4, _chat)
            elif "enerateContent" in path:
                self._answer(body, len(raw) // 4, _gemini, stream="stream" in path)
            else:
                self._whole({})

        def _answer(self, body: Json, tokens: int, speak: Any, stream: bool | None = None) -> None:
            number, turn = model.turn(body) if body.get("tools") else (0, Turn(ASIDE["text"]))
            events, whole = speak(number, turn, tokens)
            self._events(events) if (body.get("stream") if stream is None else stream) else self._whole(whole)

        def _whole(self, value: Json) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def _events(self, events: Iterator[Json | str]) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for event in events:
                name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
                told = event if isinstance(event, str) else json.dumps(event)
                self.wfile.write(f"{name}data: {told}\n\n".encode())
            self.close_connection = True

    return Handler


def _anthropic(number: int, turn: Turn, tokens: int) -> tuple[Iterator[Json], Json]:
    blocks: list[Json] = [{"type": "text", "text": turn.text}] if turn.text else []
    blocks += [
        {"type": "tool_use", "id": f"toolu_{number}_{k}", "name": name, "input": dict(given)}
        for k, (name, given) in enumerate(turn.calls)
    ]
    stop = "tool_use" if turn.calls else "end_turn"
    usage = {"input_tokens": tokens, "output_tokens": 20}
    message: Json = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "mock", "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip

    def events() -> Iterator[Json]:
        yield {"type": "message_start", "message": message}
        for k, block in enumerate(blocks):
            text = block["type"] == "text"
            empty = {**block, "text": ""} if text else {**block, "input": {}}
            delta = {"type": "text_delta", "text": block["text"]} if text else {
                "type": "input_json_delta", "partial_json": json.dumps(block["input"])}  # fmt: skip
            yield {"type": "content_block_start", "index": k, "content_block": empty}
            yield {"type": "content_block_delta", "index": k, "delta": delta}
            yield {"type": "content_block_stop", "index": k}
        yield {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}
        yield {"type": "message_stop"}

    return events(), {**message, "content": blocks, "stop_reason": stop}


def _responses(number: int, turn: Turn, tokens: int) -> tuple[Iterator[Json], Json]:
    items: list[Json] = []
    if turn.text:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        items.append(
            {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}
        )
    items += [
        {"type": "function_call", "id": f"fc_{number}_{k}", "call_id": f"call_{number}_{k}", "name": name,
         "arguments": json.dumps(given), "status": "completed"}
        for k, (name, given) in enumerate(turn.calls)
    ]  # fmt: skip
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": tokens, "output_tokens": 20, "total_tokens": tokens + 20, **details}
    begun: Json = {"id": f"resp_{number}", "object": "response", "status": "in_progress", "output": [], "model": "mock"}
    done = {**begun, "status": "completed", "output": items, "usage": usage}

    def events() -> Iterator[Json]:
        yield {"type": "response.created", "response": begun}
        for k, item in enumerate(items):
            yield {"type": "response.output_item.added", "output_index": k, "item": item}
            yield {"type": "response.output_item.done", "output_index": k, "item": item}
        yield {"type": "response.completed", "response": done}

    return events(), done


def _chat(number: int, turn: Turn, tokens: int) -> tuple[Iterator[Json | str], Json]:
    message: Json = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [
            {"index": k, "id": f"call_{number}_{k}", "type": "function",
             "function": {"name": name, "arguments": json.dumps(given)}}
            for k, (name, given) in enumerate(turn.calls)
        ]  # fmt: skip
    end = "tool_calls" if turn.calls else "stop"
    usage = {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}
    base = {"id": f"chat-{number}", "created": 1, "model": "mock"}

    def events() -> Iterator[Json | str]:
        chunk = {**base, "object": "chat.completion.chunk"}
        yield {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
        yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": end}], "usage": usage}
        yield "[DONE]"

    choices = [{"index": 0, "message": message, "finish_reason": end}]
    return events(), {**base, "object": "chat.completion", "choices": choices, "usage": usage}


def _gemini(number: int, turn: Turn, tokens: int) -> tuple[Iterator[Json], Json]:
    parts: list[Json] = [{"text": turn.text}] if turn.text else []
    parts += [{"functionCall": {"name": name, "args": dict(given)}} for name, given in turn.calls]
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": 20, "totalTokenCount": tokens + 20}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "mock"}
    return iter([whole]), whole
