"""How bytes get in and out of files."""

import errno
import hashlib
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple, NoReturn

from compactor.errors import InputError, OutputError

STDIN = "-"
ZSTD = b"\x28\xb5\x2f\xfd"
"""How a file begins that is compressed as Zstandard."""
ATTEMPTS = 3


class Stamp(NamedTuple):
    """By what a file is known to be unchanged."""

    size: int
    mtime_ns: int
    inode: int


def read_input(path: str) -> tuple[bytes, Stamp]:
    """All bytes of a file, or of standard input for `-`, unpacked where they are Zstandard; raises InputError."""
    if path == STDIN:
        data = _read_stdin()
        return _unpacked(data, "standard input"), Stamp(len(data), 0, 0)
    try:
        for _ in range(ATTEMPTS):
            with Path(path).open("rb") as file:
                before = os.fstat(file.fileno())
                data = file.read()
            stamp = _stamp(before)
            if unchanged(path, stamp):
                return _unpacked(data, shown(path)), stamp
    except (OSError, ValueError) as error:
        _fail_input(path, error)
    message = f"{shown(path)}: it changes while it is being read; wait until the agent is idle, or compact a copy"
    raise InputError(message)


def is_packed(path: str) -> bool:
    """Whether a file is compressed; raises InputError where it can't be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(ZSTD)) == ZSTD
    except (OSError, ValueError) as error:
        _fail_input(path, error)


def unchanged(path: str, stamp: Stamp) -> bool:
    """Whether the file is still what was read; always so for standard input and pipes, which can't be read twice."""
    if path == STDIN:
        return True
    try:
        now = Path(path).stat()
    except OSError:
        return False
    return _stamp(now) == stamp or not stat.S_ISREG(now.st_mode)


def write_atomic(path: str, data: bytes, *, mode: int | None = None) -> None:
    """Put the bytes at `path` at once, whatever was there; raises OutputError, and then nothing has changed.

    A link is followed. An existing file keeps its mode; a new one gets `mode`, by default what the umask leaves.
    """
    with prepared(path, data, mode=mode, overwrite=True) as put:
        put()


def write_new(path: str, data: bytes, *, mode: int | None = None) -> None:
    """Put the bytes at `path` at once if nothing is there; raises OutputError, also where another process was first."""
    with prepared(path, data, mode=mode, overwrite=False) as put:
        put()


@contextmanager
def prepared(path: str, data: bytes, *, mode: int | None = None, overwrite: bool) -> Iterator[Callable[[], None]]:
    """The bytes on the disk beside `path`; the call that is given puts them there at once. Raises OutputError.

    So several files can be brought to the disk before the first of them is changed. Without the call nothing is left
    behind. A device or pipe can't be prepared, it's written to at once.
    """
    with _output_errors(path):
        target = Path(os.path.realpath(path))
        existing = _stat(target)
        if existing and not stat.S_ISREG(existing.st_mode):
            _write_into(target, data)
        elif existing and not overwrite:
            raise FileExistsError(errno.EEXIST, "exists", path)
    if existing and not stat.S_ISREG(existing.st_mode):
        yield lambda: None
        return
    mode = stat.S_IMODE(existing.st_mode) if existing else mode
    with _written(path, target, data, mode) as temporary:

        def put() -> None:
            with _output_errors(path):
                if overwrite:
                    temporary.replace(target)
                else:
                    _link(temporary, target, data, mode)
                _sync_folder(target)

        yield put


def write_exclusive(path: str, data: bytes, *, mode: int | None = None) -> str:
    """Put the bytes at `path`, or beside it with a counter where other bytes stand; returns where they are now.

    Nothing is ever overwritten; where the same bytes stand already, nothing is written.
    """
    name = exclusive_name(path, data)
    if not os.path.lexists(name):
        write_new(name, data, mode=mode)
    return name


def exclusive_name(path: str, data: bytes) -> str:
    """Where `write_exclusive` puts these bytes: the first name that is free or holds them already."""
    return next(
        name
        for name in _candidates(path)
        if _holds(Path(name), data) or not os.path.lexists(name)  # a dangling link counts as taken
    )


def make_folder(path: str) -> None:
    """Make the folder that `path` goes into, where there is none; raises OutputError."""
    with _output_errors(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)


def backup_name(path: str, data: bytes) -> str:
    """Where the original of an in-place change is kept."""
    return f"{path}.{hashlib.sha256(data).hexdigest()[:8]}.orig"


def is_device(path: str) -> bool:
    """Whether something stands there that can't be replaced, only written to: a device or a pipe."""
    try:
        existing = _stat(Path(path))
    except (OSError, ValueError):
        return False
    return existing is not None and not (stat.S_ISREG(existing.st_mode) or stat.S_ISDIR(existing.st_mode))


def mode_of(path: str) -> int | None:
    """The mode for a file made from this one: 0600 where it is private, else None, the umask's default."""
    existing = None if path == STDIN else _stat(Path(path))
    private = existing and stat.S_ISREG(existing.st_mode) and not existing.st_mode & 0o077
    return 0o600 if private else None


def shown(path: str) -> str:
    """A path as it can stand in a message: on one line, in UTF-8, with nothing that a terminal obeys."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text) or "''"


def _unpacked(data: bytes, name: str) -> bytes:
    if not data.startswith(ZSTD):
        return data
    import zstandard

    try:
        return b"".join(zstandard.ZstdDecompressor().read_to_iter(data))
    except zstandard.ZstdError as error:
        message = f"{name}: begins like a Zstandard file but can't be unpacked ({error}); take it from a backup"
        raise InputError(message) from error


def _read_stdin() -> bytes:
    try:
        return sys.stdin.buffer.read()
    except (OSError, ValueError, AttributeError) as error:  # closed, or no standard input at all
        message = f"standard input can't be read ({error}); pipe a transcript in or name a file"
        raise InputError(message) from error


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ino)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


@contextmanager
def _written(path: str, target: Path, data: bytes, mode: int | None) -> Iterator[Path]:
    """The bytes in a temporary file beside the target, on disk; it is gone afterwards, whatever happens."""
    temporary = target.with_name(f".compact-{secrets.token_hex(8)}.tmp")
    try:
        with _output_errors(path):
            _create(temporary, data, mode)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _create(path: Path, data: bytes, mode: int | None) -> None:
    """Make a new file and bring it to the disk; when that fails it's gone again."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            path.chmod(mode)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _link(temporary: Path, target: Path, data: bytes, mode: int | None) -> None:
    try:
        target.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: the name is still ours alone, but others can see it fill
        _create(target, data, mode)


def _write_into(target: Path, data: bytes) -> None:
    """Write to a device or pipe, which can't be replaced."""
    with target.open("wb") as file:
        file.write(data)


def _sync_folder(target: Path) -> None:
    with suppress(OSError):  # not every system can; the file itself is safe
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _candidates(path: str) -> Iterator[str]:
    yield path
    place = Path(path)
    for number in count(2):
        yield str(place.with_name(f"{place.stem}.{number}{place.suffix}"))


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


@contextmanager
def _output_errors(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        message = f"{shown(path)}: {_reason(error)}; {_output_cure(error, path)}"
        raise OutputError(message) from error


def _fail_input(path: str, error: OSError | ValueError) -> NoReturn:
    message = f"{shown(path)}: {_reason(error)}; {_INPUT_CURES.get(_number(error), 'give another file')}"
    raise InputError(message) from error


def _number(error: OSError | ValueError) -> int:
    return (error.errno or 0) if isinstance(error, OSError) else errno.EINVAL


def _reason(error: OSError | ValueError) -> str:
    number = _number(error)
    return _REASONS.get(number) or os.strerror(number).lower()


def _output_cure(error: OSError | ValueError, path: str) -> str:
    if _number(error) == errno.ENOENT:
        return f"make its folder first: mkdir -p {shown(str(Path(path).parent))}"
    return _OUTPUT_CURES.get(_number(error), "choose another place with -o")


_REASONS = {
    errno.ENOENT: "no such file or folder",
    errno.EISDIR: "it is a folder",
    errno.EEXIST: "it exists",
    errno.ENOSPC: "the disk is full",
    errno.EINVAL: "it is no name for a file",
}
_INPUT_CURES = {
    errno.ENOENT: "check the path",
    errno.EISDIR: "name a file in it",
    errno.EACCES: "ask for the right to read it, or copy it",
}
_OUTPUT_CURES = {
    errno.EEXIST: "replace it with -f, or choose another place with -o",
    errno.EISDIR: "name a file in it with -o",
    errno.ENOSPC: "free some space, or choose another place with -o",
}
