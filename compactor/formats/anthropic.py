"""Anthropic messages. Signed thoughts stay as they are (`signed`)."""

from dataclasses import replace

from compactor.formats import blocks, cline_voice, dialects, signed
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList, Plain
from compactor.formats.pairs import Calls
from compactor.transcript import Part, Source, Transcript


class Anthropic(Plain):
    """The messages of the Messages API."""

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        content, role = message.get("content"), string(message.get("role"))
        content = cline_voice.joined(content) if role == "user" else content
        return tuple(blocks.parts(content, role, calls, lambda text: cline_voice.told(text, before, calls)))

    def without(self, message: Message, orphans: frozenset[str]) -> Message | None:
        kept = [block for block in message["content"] if not _answers(block, orphans)]
        return {**message, "content": kept} if kept else None


def _answers(block: object, calls: frozenset[str]) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result" and string(block.get("tool_use_id")) in calls


class AnthropicList(MessageList):
    """Lists whose thoughts must be signed."""

    def read(self, raw: bytes, name: str) -> Source:
        source = super().read(raw, name)
        return replace(source, transcripts=tuple(map(_told, source.transcripts)))


def _told(transcript: Transcript) -> Transcript:
    notes = (*transcript.notes, *signed.unsigned(transcript.entries[index] for index in transcript.live))
    return replace(transcript, notes=notes)


FORMAT = AnthropicList(
    "anthropic", "Anthropic messages, as lines, rows, array or object", "user", Anthropic(),
    dialects.is_anthropic,
)  # fmt: skip
