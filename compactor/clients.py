"""Where the agents keep their sessions, and how each resumes one."""

import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

from compactor.errors import UsageError
from compactor.transcript import Source


@dataclass(frozen=True)
class Place:
    """A new session: where its client looks for it, and the command that resumes it."""

    path: Path
    command: str


def claude_projects() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "projects"


def is_session_folder(folder: Path) -> bool:
    """Whether an agent lists every file of that folder as a session."""
    try:
        return folder.resolve().is_relative_to(claude_projects().resolve())
    except (OSError, RuntimeError):  # no home
        return False


def new_session(source: Source) -> Place:
    """A place for a compacted copy of the source under a session id of its own, the same each time."""
    if source.format != "claude-code" or len(source.transcripts) != 1:
        message = f"{source.name}: --resumable goes with a Claude Code session; this is {source.format}"
        raise UsageError(message)
    transcript = source.transcripts[0]
    if not transcript.cwd:
        message = f"{source.name}: the session names no folder, so its client wouldn't find it; use -o"
        raise UsageError(message)
    session = str(uuid.uuid5(uuid.NAMESPACE_URL, f"transcript-compactor:resumable:{source.sha256}"))
    folder = claude_projects() / re.sub(r"[^A-Za-z0-9]", "-", transcript.cwd)
    return Place(folder / f"{session}.jsonl", f"cd {_quoted(transcript.cwd)} && claude --resume {session}")


def beside(path: str, source: Source) -> str:
    """What its owner should know of a client's other file beside a session; empty where there is none."""
    other = path.removesuffix(".messages.json") + ".compaction.json"
    if source.format != "cline" or other == path or not path.endswith(".messages.json") or not Path(other).exists():
        return ""
    name = Path(other).name
    return f"{name} beside it holds what Cline sends since it compacted the session; this is the whole session"


def resume_command(source: Source, position: int) -> str:
    """The command that resumes a session under its own id; empty where the format has no client."""
    transcript = source.transcripts[position]
    if source.format != "claude-code" or not transcript.session:
        return ""
    return f"claude --resume {transcript.session}"


def _quoted(path: str) -> str:
    return path if re.fullmatch(r"[\w./~-]+", path) else "'" + path.replace("'", "'\\''") + "'"
