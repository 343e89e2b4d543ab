"""A session of any size in any format, of short prompts, tool calls, and outputs of 0.2 to 8 kB.

The records are those of the tests' builder, so `tests` must be on the path; Claude Code's apart, whose client writes
more than the builder tells. A record has about as many bytes as in real sessions of Codex: 1.2 kB.
"""

from pathlib import Path
from typing import Literal, get_args

from build import Form, Talk

from bench import generate

Kind = Literal[Form, "aider"]
FORMATS: tuple[Kind, ...] = (*get_args(Form), "aider")
OUTPUT = (200, 8_000, 900)
"""The least, the most and the commonest characters of an output."""


class Work(generate.Session):
    """An agent's work, told step by step."""

    def talk(self, megabytes: float) -> Talk:
        talk, size, told = Talk(), 0.0, 0
        talk.system(" ".join(self.sentence() for _ in range(60)))
        while size < megabytes * 1_000_000:
            self.turn_of(talk)
            size += sum(200 + len(step.text) + 200 * len(step.calls) for step in talk.steps[told:])
            told = len(talk.steps)
        return talk

    def turn_of(self, talk: Talk) -> None:
        path = self.random.choice(self.paths)
        talk.user(f"Now the {self.word()} of {path}: {self.sentence()}")
        for _ in range(self.random.randint(2, 6)):
            if self.random.random() < 0.5:
                talk.agent(self.sentence())
            if self.random.random() < 0.5:
                talk.ran(f"pytest tests/test_{self.word()}.py -q", self.output(self.log()))
            else:
                talk.read(path, self.output(self.code()))
        talk.agent(f"Done: {self.sentence()} {self.sentence()} It is in {path}.")

    def output(self, like: str) -> str:
        size = int(self.random.triangular(*OUTPUT))
        return (like * (size // len(like) + 1))[:size]


def write(form: Kind, megabytes: float, path: Path) -> None:
    """Write a session of about that size."""
    if form == "claude-code":
        generate.write(path, megabytes)
    else:
        talk = Work(1).talk(megabytes)
        path.write_bytes(_aider(talk) if form == "aider" else talk.raw(form))


def _aider(talk: Talk) -> bytes:
    marks = {"user": "#### ", "tool": "> ", "system": "> "}
    told = ["# aider chat started at 2026-03-01 09:00:00\n"]
    for step in talk.steps:
        told.append("".join(f"{marks.get(step.role, '')}{line}\n" for line in step.text.splitlines()))
    return "\n".join(told).encode()
