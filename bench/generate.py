"""A Claude Code session of any size, in the proportions of real ones.

`python -m bench.generate MEGABYTES FILE [SEED]`; about 41 % of the bytes are the client's copies of results.
"""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]

WORDS = """
account address archive balance batch border branch buffer cache carrier cart channel charge claim client column
cursor customer delta deposit digest discount draft entry event export field filter folder gateway handle header
index input invoice item journal key label ledger limit line lock margin merge message metric model node note
number offer order output owner packet parcel parser part payment period plan price product quota range rate
record refund region report request result retry return route row rule schema scope segment session shard shelf
signal source stage state status stock stream supplier table target tax tenant ticket token total trace transfer
unit user value vendor version voucher warehouse weight window worker zone
""".split()  # noqa: SIM905 - a list literal would fill the screen
RULES = (
    "Never change the public interface under /v2.",
    "Ask me before you touch the migrations.",
    "Don't add a dependency for this.",
    "You may run the tests as often as you like, but don't push.",
    "Keep the old column until the end of the month.",
)
FILES = 40


class Session:
    """Makes records one after another, linked as the client links them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.session = self.uuid()
        self.last: str | None = None
        self.second = 0
        self.context = 18_000
        self.paths = [f"/home/dev/shop/{self.word()}/{self.word()}_{n}.py" for n in range(FILES)]

    def records(self) -> Iterator[Record]:
        turn = 0
        while True:
            turn += 1
            yield from self.turn(turn)

    def turn(self, number: int) -> Iterator[Record]:
        path = self.random.choice(self.paths)
        rule = f" {RULES[number // 4 % len(RULES)]}" if number % 4 == 1 else ""
        asked = (
            f"Now the {self.word()} of {path}: {self.sentence()} It must hold for {self.random.randrange(10**5)}.{rule}"
        )
        yield self.chain("user", message={"role": "user", "content": asked})
        snapshot = {"messageId": self.last, "trackedFileBackups": {path: None}, "timestamp": self.now()}
        yield {"type": "file-history-snapshot", "messageId": self.last, "snapshot": snapshot, "isSnapshotUpdate": False}
        for _ in range(self.random.randint(2, 6)):
            yield from self.step()
        text = (
            f"Done: {self.sentence()} {self.sentence()} It is in {path}, and {self.random.randint(20, 400)} tests pass."
        )
        yield from self.message({"type": "text", "text": text})
        yield self.chain(
            "system", subtype="turn_duration", durationMs=self.random.randint(9_000, 300_000), isMeta=False
        )

    def step(self) -> Iterator[Record]:
        kind = self.random.choice(("read", "read", "run", "run", "edit", "edit", "search"))
        thinking = {"type": "thinking", "thinking": self.sentence(), "signature": f"{self.random.getrandbits(1600):x}"}
        blocks: list[Record] = [thinking, {"type": "text", "text": self.sentence()}]
        made = [getattr(self, kind)() for _ in range(2 if kind == "read" else 1)]
        yield from self.message(*blocks, *(call for call, _, _ in made))
        source = self.last
        for call, content, copy in made:
            for second in range(self.random.randint(1, 3) if kind == "run" else 0):
                data = {"type": "bash_progress", "output": content[-200:], "elapsedTimeSeconds": second + 1}
                yield self.chain("progress", data=data, toolUseID=f"bash-progress-{second}", parentToolUseID=call["id"])
            block = {"tool_use_id": call["id"], "type": "tool_result", "content": content}
            body = {"role": "user", "content": [block]}
            yield self.chain("user", message=body, toolUseResult=copy, sourceToolAssistantUUID=source)

    def read(self) -> tuple[Record, str, Any]:
        path, code = self.random.choice(self.paths), self.code()
        content = "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(code.splitlines(), 1))
        count = code.count("\n")
        file = {"filePath": path, "content": code, "numLines": count, "startLine": 1, "totalLines": count}
        return self.call("Read", file_path=path), content, {"type": "text", "file": file}

    def run(self) -> tuple[Record, str, Any]:
        output = self.log()
        call = self.call("Bash", command=f"pytest tests/test_{self.word()}.py -q", description=self.sentence())
        return call, output, {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}

    def edit(self) -> tuple[Record, str, Any]:
        path, old, new, whole = self.random.choice(self.paths), self.code(2), self.code(2), self.code(24)
        copy = {"filePath": path, "oldString": old, "newString": new, "originalFile": whole, "userModified": False}
        call = self.call("Edit", file_path=path, old_string=old, new_string=new)
        return call, f"The file {path} has been updated successfully.", copy

    def search(self) -> tuple[Record, str, Any]:
        found = "\n".join(
            f"{self.random.choice(self.paths)}:{self.random.randint(1, 400)}:    {self.word()} = {self.word()}()"
            for _ in range(self.random.randint(4, 25))
        )
        call = self.call("Grep", pattern=self.word(), output_mode="content")
        return call, found, {"mode": "content", "numFiles": 0, "content": found, "numLines": found.count("\n") + 1}

    def code(self, functions: int = 0) -> str:
        made = []
        for _ in range(functions or self.random.randint(3, 12)):
            name, first, second = self.word(), self.word(), self.word()
            made.append(
                f"def {name}_{self.random.randrange(1000)}({first}: int, {second}: str = {self.word()!r}) -> int:\n"
                f'    """{self.sentence()}"""\n    if {first} > {self.random.randrange(500)}:\n'
                f"        raise ValueError(f'{second} {{{first}}} is beyond the {self.word()}')\n"
                f"    {self.word()}_total = sum({self.word()}.{self.word()} for _ in range({first}))\n"
                f"    return {{{second}: {first} * {self.random.randrange(90)}}}\n"
            )
        return "\n\n".join(made)

    def log(self) -> str:
        lines = [
            f"2026-03-{1 + self.random.randrange(28):02d} {self.random.randrange(24):02d}:"
            f"{self.random.randrange(60):02d}:{self.random.randrange(60):02d},{self.random.randrange(1000):03d} "
            f"{self.random.choice(('INFO', 'DEBUG', 'WARNING'))} shop.{self.word()}: {self.word()} {self.hex(12)} "
            f"{self.sentence()}"
            for _ in range(self.random.randint(5, 40))
        ]
        return "\n".join([*lines, f"{self.random.randint(3, 400)} passed in {self.random.randint(1, 60)}.24s"])

    def message(self, *blocks: Record) -> Iterator[Record]:
        """One message of the assistant, a record for each block."""
        self.context += 900
        identity, request = f"msg_{self.hex(24)}", f"req_{self.hex(24)}"
        usage = {
            "input_tokens": 5,
            "cache_creation_input_tokens": 900,
            "cache_read_input_tokens": self.context,
            "cache_creation": {"ephemeral_5m_input_tokens": 900, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 300,
            "service_tier": "standard",
        }
        for block in blocks:
            body = {
                "model": "claude-sonnet-4-5",
                "id": identity,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": usage,
            }
            yield self.chain("assistant", message=body, requestId=request)

    def call(self, name: str, **arguments: Any) -> Record:
        return {"type": "tool_use", "id": f"toolu_{self.hex(24)}", "name": name, "input": arguments}

    def chain(self, kind: str, **fields: Any) -> Record:
        uuid = self.uuid()
        record = {
            "parentUuid": self.last,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/dev/shop",
            "sessionId": self.session,
            "version": "2.1.71",
            "gitBranch": "main",
            "type": kind,
            **fields,
            "uuid": uuid,
            "timestamp": self.now(),
        }
        self.last = uuid
        return record

    def now(self) -> str:
        self.second += 2
        days, rest = divmod(self.second, 86_400)
        return f"2026-03-{1 + days % 28:02d}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}.000Z"

    def word(self) -> str:
        return self.random.choice(WORDS)

    def sentence(self) -> str:
        return f"The {' '.join(self.random.choices(WORDS, k=self.random.randint(5, 14)))}."

    def hex(self, digits: int) -> str:
        return f"{self.random.getrandbits(4 * digits):0{digits}x}"

    def uuid(self) -> str:
        return "-".join(self.hex(digits) for digits in (8, 4, 4, 4, 12))


def write(path: Path, megabytes: float, seed: int = 1) -> None:
    """Write a session that is at least so large, and hardly larger."""
    size = 0
    with path.open("wb") as file:
        for record in Session(seed).records():
            size += file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
            if size >= megabytes * 1_000_000 and record["type"] == "system":
                return


if __name__ == "__main__":
    write(Path(sys.argv[2]), float(sys.argv[1]), *map(int, sys.argv[3:4]))
