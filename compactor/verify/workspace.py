"""Whether the files that a snapshot tells of are as it says, on disk."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath, PureWindowsPath

from compactor.snapshot import Snapshot
from compactor.verify.finding import Finding

Present = Callable[[str], bool]
"""Whether something is at a path below the workspace, its parts joined by slashes."""


def files_are_there(snapshot: Snapshot, folders: Sequence[str], present: Present) -> Iterator[Finding]:
    """Every active artifact is in the workspace, or isn't where it is deleted.

    `folders` are where the session says that it worked: a path below one of them is looked up below the workspace.
    Other absolute paths, and addresses, aren't looked up.
    """
    for item in snapshot.artifacts:
        below = _below(item.path, folders) if item.status == "active" else ""
        if not below or present(below) != (item.state == "deleted"):
            continue
        message = f"{item.path} is {'still' if item.state == 'deleted' else 'not'} there"
        cure = "look at what became of it since"
        yield Finding("workspace", "error", message, cure, "artifacts", item.id, item.evidence)


def _below(path: str, folders: Sequence[str]) -> str:
    """A path as it is below the workspace; empty where that isn't known."""
    if not path or "://" in path or path.startswith("~"):
        return ""
    kind = PureWindowsPath if "\\" in path or path[1:2] == ":" else PurePosixPath
    told = kind(path)
    if not told.is_absolute():
        return told.as_posix()
    inside = [told.relative_to(folder).as_posix() for folder in folders if folder and told.is_relative_to(folder)]
    return min(inside, key=len, default="")
