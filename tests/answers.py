"""What an honest, small model would answer to a prompt of ours: it reads nothing but the prompt."""

import json
import re
from typing import Any

Body = dict[str, Any]


def asked(body: Body) -> str:
    """The prompt of a request, without the system message."""
    return str(body["messages"][-1]["content"])


def transcript(prompt: str) -> str:
    """The material in a prompt."""
    match = re.search(r"<transcript-(\w+)>\n(.*)\n</transcript-\1>", prompt, re.DOTALL)
    return match[2] if match else ""


def spoken(prompt: str, who: str = "USER") -> list[tuple[str, str]]:
    """The label and first line of every text of that speaker."""
    return re.findall(rf"^\[([\d./]+)\] {who}:\n(.+)$", transcript(prompt), re.MULTILINE)


def honest(body: Body) -> str:
    """A reply that keeps the user's rules, what was run and what the agent said last."""
    return json.dumps(update(asked(body)))


def update(prompt: str) -> dict[str, Any]:
    """That reply, before it is written out."""
    users, agent = spoken(prompt), spoken(prompt, "AGENT")
    rules = [(label, rule) for label, text in users for rule in re.findall(r"Never [^.]*\.", text)]
    runs = re.findall(r"^\[([\d./]+)\] RESULT of \[([\d./]+)\] Bash: ok.*\n(.+)$", transcript(prompt), re.MULTILINE)
    add: dict[str, Any] = {
        "constraints": [{"quote": rule, "said_by": "user", "basis": "stated", "evidence": [at]} for at, rule in rules],
        "completed": [
            {"text": f"It said: {said}", "proof": at, "basis": "observed", "evidence": [call, at]}
            for at, call, said in runs
        ],
    }
    if users:
        add["objective"] = [{"text": users[-1][1], "basis": "stated", "evidence": [users[-1][0]]}]
        add["next_action"] = [{"text": f"Go on with: {users[-1][1]}", "basis": "inferred", "evidence": [users[-1][0]]}]
    if agent:
        add["decisions"] = [
            {"text": agent[-1][1], "why": "it said so", "basis": "reported", "evidence": [agent[-1][0]]}
        ]
    return {"add": {name: items for name, items in add.items() if items}, "close": [], "supersede": []}
