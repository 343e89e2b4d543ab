"""A real client plays a session, resumes what compact made of it, goes on, and resumes that compacted again.

    python tests/interop/play.py CLIENT FOLDER [SESSION]

runs inside a network namespace of its own, where the only host is the model of loopback.py, with a throw-away home in
FOLDER, and prints one JSON object: what the model was sent after each resumption, and what `compact` said. With
SESSION, a file of that client's, the client goes on from that one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopback import Model, Turn

PACKAGES = {
    "claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "pi": "@mariozechner/pi-coding-agent",
    "gemini": "@google/gemini-cli", "opencode": "opencode-ai",
}  # fmt: skip
PROMPTS = (
    "Count the beds of the greenhouse. Never water bed 13.", "How much water does each get?", "And the ferns?",
    "Write down what we know.", "What comes next?",
)  # fmt: skip
PROBE = "PROBE: go on."
SHELL = {"claude": "Bash", "codex": "exec_command", "pi": "bash", "gemini": "run_shell_command", "opencode": "bash"}
_SAYS = frozenset((
    "text", "content", "input", "output", "arguments", "parts", "args", "response", "functionCall", "functionResponse",
    "function", "tool_calls", "command", "cmd",
))  # fmt: skip
KEEP = "6"


def turns(client: str) -> list[Turn]:
    """The script of the first session: long enough that a block is smaller than what it replaces."""
    told = []
    for n in range(len(PROMPTS)):
        rows = " ".join(f"bed{n}{k}={n * 7 + k}ml" for k in range(160))
        given = {"command": f"echo '{rows}'", "description": f"list {n}"}
        if client == "codex":
            given = {"cmd": given["command"]}
        told.append(Turn(f"I look at table {n}.", [(SHELL[client], given)]))
        told.append(Turn(f"Answer {n}: the table holds 160 beds, bed{n}3 gets {n * 7 + 3} ml."))
    return told


def _toml(values: Mapping[str, str]) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


@dataclass
class Client:
    """One of the clients, with a home of its own and the model to ask."""

    name: str
    folder: Path
    model: Model
    resumable: str = ""
    """What the session that was placed last is resumed by."""

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def cwd(self) -> Path:
        return self.home / "greenhouse"

    def configure(self) -> None:
        self.cwd.mkdir(parents=True, exist_ok=True)
        base = self.model.base
        if self.name == "codex":
            own = {"model": "mock", "model_provider": "mock", "approval_policy": "never",
                   "sandbox_mode": "danger-full-access"}  # fmt: skip
            provider = {"name": "mock", "base_url": f"{base}/v1", "wire_api": "responses", "env_key": "MOCK_KEY"}
            self._put(".codex/config.toml", f"{_toml(own)}[model_providers.mock]\n{_toml(provider)}")
        elif self.name == "pi":
            cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
            known = {"id": "mock", "name": "mock", "reasoning": False, "input": ["text"], "cost": cost,
                     "contextWindow": 128_000, "maxTokens": 4_096}  # fmt: skip
            asked = {"baseUrl": f"{base}/v1", "api": "openai-completions", "apiKey": "MOCK_KEY", "models": [known]}
            self._put(".pi/agent/models.json", json.dumps({"providers": {"mock": asked}}))
        elif self.name == "gemini":
            self._put(".gemini/settings.json", json.dumps({
                "security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": False},
                "privacy": {"usageStatisticsEnabled": False},
            }))  # fmt: skip
        elif self.name == "opencode":
            models = {"mock": {"name": "mock", "limit": {"context": 128_000, "output": 4_096}}}
            options = {"baseURL": f"{base}/v1", "apiKey": "dummy"}
            sdk = {"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": options, "models": models}
            allowed = {"bash": "allow", "edit": "allow"}
            told = {"provider": {"mock": sdk}, "model": "mock/mock", "permission": allowed}
            self._put(".config/opencode/opencode.json", json.dumps(told))

    def _put(self, path: str, text: str) -> None:
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def run(self, *words: str) -> str:
        """Run the client; returns what it printed."""
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "TERM") if key in os.environ}
        own = {
            "HOME": str(self.home), "ANTHROPIC_BASE_URL": self.model.base, "ANTHROPIC_API_KEY": "dummy",
            "IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
            "MOCK_KEY": "dummy", "GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": self.model.base,
            "OPENCODE_DISABLE_AUTOUPDATE": "1", "NO_COLOR": "1",
        }  # fmt: skip
        program = Path(os.environ["INTEROP_CLIENTS"]) / "node_modules/.bin" / self.name
        output = self.folder / "output.txt"  # a file: opencode leaves before all is through a pipe
        with output.open("w") as file:
            done = subprocess.run([str(program), *words], cwd=self.cwd, env=kept | own, stdin=subprocess.DEVNULL,
                                  stdout=file, stderr=subprocess.PIPE, text=True, timeout=120, check=False)  # fmt: skip
        told = output.read_text()
        if done.returncode:
            message = f"{self.name} {' '.join(words)[:80]}: exit {done.returncode}\n{told[-800:]}{done.stderr[-800:]}"
            raise RuntimeError(message)
        return told

    def say(self, prompt: str, session: str = "", more: bool = False) -> str:
        """Say something in a new session, in the last one (`more`), or in that session."""
        match self.name:
            case "claude":
                where = ["--resume", session] if session else ["-c"] if more else []
                return self.run(*where, "-p", prompt, "--dangerously-skip-permissions")
            case "codex":
                where = ["resume", session] if session else ["resume", "--last"] if more else []
                return self.run("exec", "--skip-git-repo-check", *where, prompt)
            case "pi":
                where = ["--session", session] if session else ["-c"] if more else []
                return self.run("--provider", "mock", "--model", "mock", *where, "-p", prompt)
            case "gemini":
                where = ["--resume", session or "latest"] if session or more else []
                return self.run("--yolo", "--skip-trust", "-m", "gemini-2.5-pro", *where, "-p", prompt)
        where = ["-s", session] if session else ["-c"] if more else []
        return self.run("run", *where, prompt)

    def newest(self) -> Path:
        """The file of the session that was written last."""
        if self.name == "opencode":
            name = re.findall(r"ses_\w+", self.run("session", "list"))[0]
            told = self.run("export", name)
            target = self.folder / f"{name}.json"
            target.write_text(told[told.index("{") :])
            return target
        roots = {
            "claude": ".claude/projects",
            "codex": ".codex/sessions",
            "pi": ".pi/agent/sessions",
            "gemini": ".gemini/tmp",
        }
        return max((self.home / roots[self.name]).rglob("*.jsonl"), key=lambda path: path.stat().st_mtime)

    def place(self, session: Path) -> str:
        """Put a session where the client looks for it; returns the name to resume it by."""
        if self.name == "pi":
            return str(shutil.copyfile(session, self.folder / f"resumed-{session.name}"))
        if self.name == "opencode":
            shutil.rmtree(self.home / ".local", ignore_errors=True)
            return str(re.findall(r"ses_\w+", self.run("import", str(session)))[-1])
        records = [json.loads(line) for line in session.read_bytes().splitlines() if line.strip()]
        if self.name == "claude":
            name = next(record["sessionId"] for record in records if record.get("sessionId"))
            target = self.home / ".claude/projects" / re.sub(r"[^A-Za-z0-9]", "-", str(self.cwd)) / f"{name}.jsonl"
        elif self.name == "codex":
            shutil.rmtree(self.home / ".codex", ignore_errors=True)  # its index of sessions names the old file
            self.configure()
            name = next(record["payload"]["id"] for record in records if record["type"] == "session_meta")
            target = self.home / ".codex/sessions/2026/01/01" / f"rollout-2026-01-01T00-00-00-{name}.jsonl"
        else:
            name = records[0]["sessionId"]
            folder = next((self.home / ".gemini/tmp").rglob("chats"))
            shutil.rmtree(folder)
            target = folder / f"session-2026-01-01T00-00-{name[:8]}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(session, target)
        return str(name)

    def resumed(self, session: Path) -> dict[str, Any]:
        """What the model is sent when the session is resumed, and in how many requests."""
        self.resumable = self.place(session)
        self.model.play([Turn("Understood.")])
        self.say(PROBE, session=self.resumable)
        probed = [body for body in self.model.sent if PROBE in json.dumps(body)]
        messages: list[Any] = next(
            (probed[-1][key] for key in ("messages", "input", "contents") if probed and key in probed[-1]), []
        )
        return {"requests": len(self.model.sent), "texts": ["\n".join(_texts(message)) for message in messages]}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in _SAYS:
                yield from _texts(inner)


def compact(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "compactor", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        message = f"compact {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        raise RuntimeError(message)
    return done.stdout + done.stderr


def main(name: str, folder: Path, session: Path | None = None) -> dict[str, Any]:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    client = Client(name, folder, Model(turns(name)))
    client.configure()
    ending = ".json" if name == "opencode" else ".jsonl"
    first, second = folder / f"first{ending}", folder / f"second{ending}"
    if session:
        first.write_bytes(b"".join(_at_home(line, client) for line in session.read_bytes().splitlines(keepends=True)))
    else:
        for n, prompt in enumerate(PROMPTS):
            client.say(prompt, more=n > 0)
        shutil.copyfile(client.newest(), first)
    compact(folder, "run", first.name, "-o", f"first.c{ending}", "--summary", "first.s.json", "--keep", KEEP)
    told: dict[str, Any] = {"first": client.resumed(folder / f"first.c{ending}")}
    if session:
        client.model.play(turns(name))
        for prompt in PROMPTS[:2]:
            client.say(prompt, session=client.resumable)
    shutil.copyfile(client.resumable if name == "pi" else client.newest(), second)
    shutil.copyfile(folder / "first.s.json", folder / "second.before.summary.json")
    again = ["--summary", "second.s.json", "--keep", "2", *([] if session else ["--max-summary", "1200"])]
    compact(folder, "run", second.name, "-o", f"second.c{ending}", *again)
    told["second"] = client.resumed(folder / f"second.c{ending}")
    told["verified"] = compact(folder, "verify", "second.s.json", first.name, second.name)
    for which in ("first", "second"):
        told[f"{which}_summary"] = json.loads((folder / f"{which}.s.json").read_text())
    return told


def _at_home(line: bytes, client: Client) -> bytes:
    """A line of somebody's session with the folder and the provider of this home in its header."""
    if client.name == "pi" and line.startswith(b'{"type":"session"'):
        record = {**json.loads(line), "cwd": str(client.cwd)}
    elif client.name == "codex" and b'"type":"session_meta"' in line[:100]:
        record = json.loads(line)
        record["payload"].update(cwd=str(client.cwd), model_provider="mock")
    else:
        return line
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], *map(Path, sys.argv[2:]))))
