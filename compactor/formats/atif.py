"""Trajectories of Harbor and Terminal-Bench: ATIF.

`docs/rfcs/0001-trajectory-format.md` and `src/harbor/models/trajectories` of laude-institute/harbor: steps with their
calls and observations in one, numbered from 1 without a gap. Where the harness summarised in the same file, a system
step says so and the user step behind it hands the summary over; the model is sent what follows. Where it began another
file, this one names it (`continued_trajectory_ref`), and that one repeats the context (`is_copied_context`).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from compactor.formats import blocks, pairs, sample
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList, Plain
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Entry, Note, Part, Source, Transcript

KEYS = (b"steps",)
ROLES = {"system": "system", "user": "user", "agent": "assistant"}
SOURCES = {"system": "system", "user": "user", "assistant": "agent"}
_SUMMARISED = "Performed context summarization"
"""How the system step begins that says that the harness summarised."""
_HANDOFF = ("You are picking up work from a previous AI agent", "Here are the answers the other agent provided.")
"""How the harness begins a continuation, and what it hands over after a summary of its own."""


class ATIF(Plain):
    """Steps of a trajectory."""

    def role(self, message: Message) -> str:
        return ROLES.get(string(message.get("source")), "") if "step_id" in message else ""

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        return tuple(self._parts(message, calls))

    def _parts(self, message: Message, calls: Calls) -> Iterator[Part]:
        role, text = self.role(message), _text(message.get("message"))
        if thought := string(message.get("reasoning_content")):
            yield Part("thinking", "assistant", thought)
        if text and role == "user":
            copied = message.get("is_copied_context") is True or text.startswith(_HANDOFF)
            yield Part("text", "harness", text) if copied else prompt(text)
        elif text:
            yield Part("text", blocks.speaker(role), text)
        made = message.get("tool_calls")
        for call in made if isinstance(made, list) else ():
            if isinstance(call, dict):
                yield blocks.call(
                    string(call.get("tool_call_id")), string(call.get("function_name")), call.get("arguments"), calls
                )
        seen = message.get("observation")
        results = seen.get("results") if isinstance(seen, dict) else None
        told = [result for result in results if isinstance(result, dict)] if isinstance(results, list) else []
        named = [call.get("tool_call_id") for call in made if isinstance(call, dict)] if isinstance(made, list) else []
        if any(result.get("source_call_id") for result in told):
            named = []  # one that names no call is of none
        for place, result in enumerate(told):
            answers = result.get("source_call_id")
            if isinstance(result, dict) and (answers := answers or (named[place] if place < len(named) else "")):
                block = {"tool_use_id": answers, "content": result.get("content") or ""}
                yield from blocks.result(block, calls, blocks.ALONE)
            elif isinstance(result, dict):
                yield Part("text", "tool", _text(result.get("content")))

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        return {"step_id": 0, "source": SOURCES.get(role, "user"), "message": text}

    def placed(self, message: dict[str, Any], place: int) -> str:
        if "step_id" not in message:
            return ""
        message["step_id"] = place + 1
        return "step_id: numbered anew"


def _text(content: Any) -> str:
    return content if isinstance(content, str) else blocks.result_text(content) if content is not None else ""


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether the value is such a trajectory."""
    return bool(records) and all(
        isinstance(r, dict)
        and string(r.get("schema_version")).startswith("ATIF-v")
        and isinstance(r.get("steps"), list)
        for r in records
    )


class Trajectories(MessageList):
    """Trajectories, live from the harness's own last summary."""

    def read(self, raw: bytes, name: str) -> Source:
        source = super().read(raw, name)
        found = tuple(map(_since_summary, source.transcripts))
        ref = next((r.get("continued_trajectory_ref") for r in sample.first_values(raw) if isinstance(r, dict)), None)
        if found and isinstance(ref, str) and ref:
            told = Note(1, f"goes on in {ref[:200]}: that file holds what the agent is sent now")
            found = (replace(found[0], notes=(told, *found[0].notes)), *found[1:])
        return replace(source, transcripts=found)


def _since_summary(transcript: Transcript) -> Transcript:
    """The conversation with the last summary and its handover in front of what followed them."""
    entries, live = transcript.entries, transcript.live
    at = next((k for k in range(len(live) - 2, transcript.fixed, -1) if _is_summary(entries, live[k : k + 2])), -1)
    if at < 0:
        return transcript
    told = list(entries)
    for index in live[at : at + 2]:
        parts = tuple(replace(p, speaker="summary", said=()) for p in entries[index].parts)
        told[index] = replace(entries[index], parts=parts)
    fixed = live[: transcript.fixed]
    now = (*fixed, *live[at:])
    known = {note.text for note in pairs.notes(entries[index] for index in live)}
    notes = [note for note in transcript.notes if note.text not in known]
    notes += pairs.notes(told[index] for index in now)
    return replace(
        transcript, entries=tuple(told), live=now, past=live[transcript.fixed : at], summarised=2, ours=False,
        side=frozenset(index for index in transcript.side if index > live[at]), notes=tuple(notes),
    )  # fmt: skip


def _is_summary(entries: tuple[Entry, ...], two: tuple[int, ...]) -> bool:
    says, hands = (entries[index] for index in two)
    return says.role == "system" and says.text.startswith(_SUMMARISED) and (
        hands.role == "user" and hands.text.startswith(_HANDOFF))  # fmt: skip


FORMAT = Trajectories("atif", "Harbor trajectory (ATIF)", "user", ATIF(), sniff, keys=KEYS, numbered=True)
