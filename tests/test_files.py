import errno
import io
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from compactor import files
from compactor.errors import InputError, OutputError
from compactor.files import (
    backup_name,
    mode_of,
    read_input,
    shown,
    unchanged,
    write_atomic,
    write_exclusive,
    write_new,
)

as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def one_line(error: pytest.ExceptionInfo[Exception], *words: str) -> None:
    text = str(error.value)
    assert "\n" not in text
    for word in words:
        assert word in text


def test_a_file_is_read_with_its_stamp(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\r\n\x00\xff")
    data, stamp = read_input(str(path))
    assert data == b"one\r\n\x00\xff"
    assert unchanged(str(path), stamp)


@pytest.mark.parametrize("how", ["grown", "touched", "replaced", "gone"])
def test_a_change_is_noticed(tmp_path: Path, how: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n")
    _, stamp = read_input(str(path))
    match how:
        case "grown":
            with path.open("ab") as file:
                file.write(b"two\n")
            os.utime(path, ns=(stamp.mtime_ns, stamp.mtime_ns))
        case "touched":
            os.utime(path, ns=(stamp.mtime_ns + 1, stamp.mtime_ns + 1))
        case "replaced":
            other = tmp_path / "b"
            other.write_bytes(b"two\n")
            os.utime(other, ns=(stamp.mtime_ns, stamp.mtime_ns))
            other.replace(path)
        case "gone":
            path.unlink()
    assert not unchanged(str(path), stamp)


def test_a_file_that_keeps_changing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n")
    monkeypatch.setattr(files, "unchanged", lambda path, stamp: False)
    with pytest.raises(InputError) as error:
        read_input(str(path))
    one_line(error, str(path), "changes while", "copy")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\x00one")))
    data, stamp = read_input("-")
    assert data == b"\xff\x00one"
    assert unchanged("-", stamp)


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError) as error:
        read_input("-")
    one_line(error, "standard input", "name a file")


def test_a_pipe_by_name(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"one\n" * 50_000))
    writer.start()
    data, stamp = read_input(str(pipe))
    writer.join()
    assert data == b"one\n" * 50_000
    assert unchanged(str(pipe), stamp)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("missing.jsonl", ("missing.jsonl", "no such file", "check the path")),
        (".", ("folder", "name a file in it")),
        ("a\0b", ("a\\x00b", "no name for a file")),
        ("a\nb", ("a\\nb", "no such file")),
        ("\udcff", ("\\xff", "no such file")),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, words: tuple[str]) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        read_input(path)
    one_line(error, *words)


@as_root
def test_what_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch(0o000)
    with pytest.raises(InputError) as error:
        read_input(str(path))
    one_line(error, "permission denied", "right to read")


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    path = str(tmp_path / os.fsdecode(b"caf\xe9.jsonl"))
    write_atomic(path, b"one")
    assert read_input(path)[0] == b"one"
    assert shown(path).endswith("caf\\xe9.jsonl")
    shown(path).encode()


@pytest.mark.parametrize("write", [write_atomic, write_new])
def test_a_new_file_has_the_umasks_mode(tmp_path: Path, write: Any) -> None:
    path = tmp_path / "a"
    before = os.umask(0o027)
    try:
        write(str(path), b"one")
    finally:
        os.umask(before)
    assert (path.read_bytes(), mode(path), names(tmp_path)) == (b"one", 0o640, ["a"])


@pytest.mark.parametrize("write", [write_atomic, write_new])
def test_a_new_file_can_be_private(tmp_path: Path, write: Any) -> None:
    source = tmp_path / "source"
    source.touch(0o600)
    path = tmp_path / "a"
    write(str(path), b"one", mode=mode_of(str(source)))
    assert mode(path) == 0o600


def test_only_private_files_make_private_files(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.touch()
    source.chmod(0o644)
    assert mode_of(str(source)) is None
    assert mode_of(str(tmp_path / "missing")) is None
    assert mode_of("-") is None


def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o604)
    write_atomic(str(path), b"new", mode=0o600)
    assert (path.read_bytes(), mode(path), names(tmp_path)) == (b"new", 0o604, ["a"])


def test_a_link_is_followed(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "a").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(real / "a")
    write_atomic(str(link), b"new")
    assert link.is_symlink()
    assert (real / "a").read_bytes() == b"new"
    assert names(real) == ["a"]


def test_a_device_is_written_into_and_stays_one() -> None:
    write_atomic(os.devnull, b"one")
    write_new(os.devnull, b"one")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)  # noqa: PTH116


def test_what_exists_is_not_replaced_by_write_new(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(OutputError) as error:
        write_new(str(path), b"new")
    one_line(error, str(path), "exists", "-f")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("write", [write_atomic, write_new])
@pytest.mark.parametrize(
    ("path", "words"),
    [("no/folder/a", ("no such", "mkdir -p no/folder")), (".", ("folder",)), ("n" * 300, ("too long", "-o"))],
)
def test_what_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any, path: str, words: tuple[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError) as error:
        write(path, b"one")
    one_line(error, *words)
    assert names(tmp_path) == []


@as_root
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError) as error:
        write_atomic(str(tmp_path / "a"), b"one")
    one_line(error, "permission denied", "-o")


@pytest.mark.parametrize("write", [write_atomic, write_new])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "no space"), KeyboardInterrupt()])
def test_a_failure_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any, failure: BaseException
) -> None:
    def fail(handle: int) -> None:
        raise failure

    path = tmp_path / "a"
    if write is write_atomic:
        path.write_bytes(b"old")
    before = names(tmp_path)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((OutputError, KeyboardInterrupt)) as error:
        write(str(path), b"new")
    if isinstance(failure, OSError):
        one_line(error, "disk is full", "free some space")  # type: ignore[arg-type]
    assert names(tmp_path) == before
    assert not path.exists() or path.read_bytes() == b"old"


def test_without_hard_links_a_new_file_is_still_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    write_new(str(tmp_path / "a"), b"one", mode=0o600)
    with pytest.raises(OutputError):
        write_new(str(tmp_path / "a"), b"two")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert names(tmp_path) == ["a"]


def test_of_two_writers_of_one_new_file_one_fails(tmp_path: Path) -> None:
    code = """
import sys
from compactor.errors import OutputError
from compactor.files import write_new
sys.stdin.read()
try:
    write_new(sys.argv[1], sys.argv[2].encode() * 1_000_000)
except OutputError as error:
    sys.exit(str(error))
"""
    for attempt in range(5):
        path = tmp_path / f"a{attempt}"
        racers = [
            subprocess.Popen([sys.executable, "-c", code, path, name], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
            for name in "xy"
        ]
        for racer in racers:  # both are past their imports' start before either may go
            assert racer.stdin
            racer.stdin.close()
        ends = [(racer.wait(), racer.stderr.read() if racer.stderr else b"") for racer in racers]
        for racer in racers:
            assert racer.stderr
            racer.stderr.close()
        assert sorted(code for code, _ in ends) == [0, 1]
        assert any(b"it exists" in told for _, told in ends)
        assert path.read_bytes() in (b"x" * 1_000_000, b"y" * 1_000_000)
    assert len(names(tmp_path)) == 5


def test_a_backup_is_never_overwritten(tmp_path: Path) -> None:
    name = backup_name(str(tmp_path / "a.jsonl"), b"one")
    assert name == str(tmp_path / "a.jsonl.7692c3ad.orig")
    assert write_exclusive(name, b"one", mode=0o600) == name
    assert mode(Path(name)) == 0o600
    stamp = read_input(name)[1]
    assert write_exclusive(name, b"one") == name
    assert unchanged(name, stamp)
    second = write_exclusive(name, b"two")
    assert second == str(tmp_path / "a.jsonl.7692c3ad.2.orig")
    assert write_exclusive(name, b"two") == second
    assert write_exclusive(name, b"three").endswith(".3.orig")
    assert Path(name).read_bytes() == b"one"


def test_a_dangling_link_is_no_place_for_a_backup(tmp_path: Path) -> None:
    name = tmp_path / "a.orig"
    name.symlink_to(tmp_path / "elsewhere")
    assert write_exclusive(str(name), b"one") == str(tmp_path / "a.2.orig")
    assert not (tmp_path / "elsewhere").exists()
