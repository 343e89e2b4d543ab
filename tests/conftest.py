"""What every test gets: no network, a home of its own, and the shared sessions where they are."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("here", deadline=None, max_examples=60)
settings.register_profile("ci", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "GITHUB_ACTIONS"):
    os.environ.pop(name, None)  # typer and rich read them when imported, and would colour what tests compare

LOOPBACK = ("127.", "::1", "localhost")
KEPT = ("COMPACT_TEST_SESSIONS",)


@pytest.fixture
def sessions() -> Path:
    """The folder of sessions that nobody here wrote."""
    folder = os.environ.get("COMPACT_TEST_SESSIONS")
    if not folder or not Path(folder).is_dir():
        pytest.skip("COMPACT_TEST_SESSIONS names no folder of sessions")
    return Path(folder)


@pytest.fixture
def fixtures() -> Path:
    """The sessions that we wrote."""
    return Path(__file__).parent.parent / "fixtures"


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and none of the developer's settings or keys."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        ours = name.startswith("COMPACT_") and name not in KEPT
        if ours or name.endswith("_API_KEY") or name.startswith("XDG_") or name == "CLAUDE_CONFIG_DIR":
            monkeypatch.delenv(name)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    return home


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Any connection that leaves this machine fails the test, also where the code swallows the error."""
    tried: list[str] = []

    def guard(real: Any) -> Any:
        def connect(self: socket.socket, address: Any) -> Any:
            if isinstance(address, tuple) and not str(address[0]).startswith(LOOPBACK):
                tried.append(str(address))
                message = f"a test wanted to reach {address}"
                raise ConnectionRefusedError(message)
            return real(self, address)

        return connect

    def resolve(host: Any, *rest: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name and not name.startswith(LOOPBACK):
            tried.append(name)
            message = f"a test wanted to resolve {name}"
            raise socket.gaierror(message)
        return real_resolve(host, *rest, **named)

    real_resolve = socket.getaddrinfo
    monkeypatch.setattr(socket.socket, "connect", guard(socket.socket.connect))
    monkeypatch.setattr(socket.socket, "connect_ex", guard(socket.socket.connect_ex))
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    yield
    assert not tried, f"the network was asked for: {tried}"
