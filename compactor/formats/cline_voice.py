"""What Cline and Roo Code put in the user's role, and which words in it are the user's.

Where a tool is called in the assistant's text, or the results aren't kept as such, a result is a text that begins
`[read_file for 'x'] Result:`, or such a line and the text after it (cline/cline, `ToolResultUtils.pushToolResult`).
It is one only if the assistant called that tool. In the results of tools that ask the user, `<answer>` and
`<feedback>` hold the user's words.
"""

import re
from typing import Any

from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Part, speech

_HEADER = re.compile(r"\[(\w+)(?: [^\n]*)?\] Result:[ \t]*\n*")
_OWN = re.compile(r"\s*<(task|user_message|feedback|answer)>(.*)</\1>\s*", re.DOTALL)
_ANSWER = re.compile(r"<(answer|user_message|feedback)>(.*)</\1>", re.DOTALL)
_ASKS = frozenset(("ask_followup_question", "attempt_completion", "plan_mode_respond"))
_CLIENT = ("<environment_details>", "[ERROR] You did not use a tool", "[TASK RESUMPTION]", "<explicit_instructions")


def joined(content: Any) -> Any:
    """The blocks of a message, each line that only announces a result made one with the text after it."""
    if not isinstance(content, list):
        return content
    found: list[Any] = []
    for block in content:
        held = _text(found[-1]) if found else ""
        match = _HEADER.match(held)
        if match and match.end() == len(held) and (text := _text(block)) and not text.startswith(_CLIENT):
            found[-1] = {**found[-1], "text": f"{held.rstrip()}\n{text}"}
        else:
            found.append(block)
    return found


def told(text: str, before: str, calls: Calls) -> Part:
    """A text in the user's role; `before` is the text of the assistant message before it."""
    return result(text, before, calls) or _said(text)


def result(text: str, before: str, calls: Calls) -> Part | None:
    """The text as the result of a tool that the assistant called; None where it is none."""
    match = _HEADER.match(text)
    if not match:
        return None
    name = match[1]
    call_id, inside = calls.answer("", name), f"<{name}>" in before
    if not (call_id or inside):
        return None
    own = _ANSWER.search(text, match.end()) if name in _ASKS else None
    said = speech(own[2]) if own else ()
    return Part("result" if call_id else "text", "tool", text, said, call_id, name)


def _said(text: str) -> Part:
    if text.startswith(_CLIENT):
        return Part("text", "harness", text)
    own = _OWN.fullmatch(text)
    return Part("text", "human", text, speech(own[2])) if own else prompt(text)


def _text(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else ""
    return text if isinstance(text, str) else ""
