"""Secrets are told to nobody: not to a model, a snapshot, a block, a log or a report."""

import json
import random
import string
from collections.abc import Iterator
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import pytest
from answers import honest
from command import Done, compact
from hypothesis import given
from hypothesis import strategies as st
from servers import OpenAIServer
from talks import Call, Round, Turn, garden, jsonl, openai

import compactor
from compactor import formats, redact
from compactor.leaks import leaks
from compactor.redact import PLACEHOLDER, redacted
from compactor.transcript import Source, write

_RANDOM = random.Random(11)
MIXED = string.ascii_letters + string.digits


def made(length: int, alphabet: str = MIXED) -> str:
    """Characters that nobody's key has: made here, the same in each run."""
    return "".join(_RANDOM.choice(alphabet) for _ in range(length)) + "7q"


PEM = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *(made(62) for _ in range(5)), "-----END RSA PRIVATE KEY-----"])
ESCAPED_PEM = PEM.replace("\n", "\\n")
CUT_PEM = PEM.rpartition("\n")[0]
KEY, HEX, TOKEN, BASE64 = made(32), made(38, "0123456789abcdef")[:-2] + "7f", made(34), made(84) + "=="

SECRETS = {
    'password = "hunter2"': "hunter2",
    "DB_PASSWORD=correcthorse\nDEBUG=1": "correcthorse",
    '{"password": "s3cr3t!x"}': "s3cr3t!x",
    f'{{\\"api_key\\": \\"{KEY}\\"}}': KEY,
    f"export OPENAI_API_KEY=sk-proj-{TOKEN}": f"sk-proj-{TOKEN}",
    f"Authorization: Bearer {TOKEN}": TOKEN,
    f"curl -H 'Authorization: Basic {made(22)}=='": "",
    "postgres://app:Pw9!kk2@db.internal:5432/orders": "Pw9!kk2",
    "redis://:r3disPw!@cache:6379/0": "r3disPw!",
    f"aws_secret_access_key = {made(38)}": "",
    f"found AKIA{made(16, string.ascii_uppercase)[:14]}7Q in it": "",
    f"ghp_{made(34)} was pushed": "",
    f"github_pat_{made(40)}": "",
    f"glpat-{made(18)}": "",
    f"xoxb-123456789012-{made(22, string.ascii_lowercase)}": "",
    f"sk-ant-api03-{made(40)}": "",
    f"AIza{made(33)}": "",
    f"hf_{made(32)}": "",
    f"eyJhbGciOiJIUzI1NiJ9.{made(30)}.{made(41)}": "",
    f"AccountKey={BASE64};EndpointSuffix=x": "",
    f"https://x.test/a?access_token={TOKEN}&page=2": TOKEN,
    f"https://b.test/o?X-Amz-Signature={HEX}": HEX,
    "my password is Tulip88x, remember it": "Tulip88x",
    "Das Passwort lautet Rose_77q.": "Rose_77q",
    "la contraseña es Flor4567z": "Flor4567z",
    "数据库密码是Zh0ngGuo99。": "Zh0ngGuo99",
    "mysql --password abC123xyz orders": "abC123xyz",
    f"deploy --token={TOKEN}": TOKEN,
    "<password>xmlPw12</password>": "xmlPw12",
    "curl -u admin:S3same! http://x.test": "S3same!",
    f'client_secret: "{TOKEN}"': TOKEN,
    f"secret_key='{made(48)}'": "",
    "password: pl4inYaml": "pl4inYaml",
    "'password' => 'phpPass1'": "phpPass1",
    f"The token is {KEY}": KEY,
    f"the API key is `{KEY}`": KEY,
    PEM: "",
    f'"{ESCAPED_PEM}\\n"': "",
    CUT_PEM: "",
}
"""A text, and the secret in it; where that is empty, some secret must be found."""

HARMLESS = (
    "password: string", "token = get_token()", "password = user.password", '"max_tokens": 4096',
    "the password field is required", "const token = req.headers.token", 'password=os.environ["DB_PASSWORD"]',
    "secret: ${SECRET}", 'api_key="YOUR_API_KEY"', 'primary_key = "orders_2024_id"', 'token_type: "bearer"',
    "password: <your password>", "def token(self): pass", 'secretName: "db-creds-prod"', 'keyboard: "qwerty123"',
    'key: "order-items-v2-cache"', "the secret is out", 'password: "Password"', "password is wrong",
    "self.token = token", 'if password == "":', "sha256:3f2a9c1d3f2a9c1d3f2a9c1d3f2a9c1d",
    "commit 2a9c0578a3b76e412666c66db075da11c3812ae9", "token count is 12345", "http://localhost:8080/a@b",
    "password must be at least 12 characters", 'type="password" name="pw1"', 'passwordHash: "bcrypt"',
    "secret/data/prod1", 'sessionId: "a0a451c3-4c02-414c-abf6-3cca3ad15a4e"', "Tokens: 12,000 -> 3,100",
    "password: [secret password 3f2a9c1d:41]", "OPENAI_API_KEY=sk-...", "token: xxxxxxxxxxxxxxxx",
    "urn:ietf:params:oauth:token-type:access_token\n../auth/manager.go:68", "git log --format=%H", "ssh-rsa AAAAB3Nz",
)  # fmt: skip


@pytest.mark.parametrize(("text", "secret"), SECRETS.items(), ids=range(len(SECRETS)))
def test_a_secret_is_found_whole(text: str, secret: str) -> None:
    found = [text[leak.start : leak.end] for leak in leaks(text)]
    assert found
    if secret:
        assert found == [secret]


@pytest.mark.parametrize("key", [PEM, f'"{ESCAPED_PEM}\\n"', CUT_PEM])
def test_of_a_private_key_no_line_is_left(key: str) -> None:
    (leak,) = leaks(key)
    rest = key[: leak.start] + key[leak.end :]
    assert not any(line in rest for line in key.replace("\\n", "\n").splitlines()[1:-1])


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_one_is_left(text: str) -> None:
    assert not leaks(text)


@given(st.text(alphabet="abcKEY password=:\"'{}[]<>()\n\\-_0129密码是İ", max_size=80))
def test_leaks_lie_within_the_text_and_apart(text: str) -> None:
    found = leaks(text)
    assert all(0 <= leak.start < leak.end <= len(text) for leak in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


def test_time_grows_with_the_text_only() -> None:
    import time

    def seconds(text: str) -> float:
        begun = time.perf_counter()
        leaks(text)
        return time.perf_counter() - begun

    for piece in ('password = "x', "://a:b", "-----BEGIN PRIVATE KEY-----\n", "curl -u a", "token token ", "eyJ"):
        one, eight = min(seconds(piece * 2_000) for _ in range(3)), min(seconds(piece * 16_000) for _ in range(3))
        assert eight < one * 24 + 0.05, piece


# The whole way

STRONG, WEAK, INNER = f"tok{made(30)}", "tulip", f"pw{made(14)}"


def planted() -> list[dict[str, Any]]:
    """A session in which secrets are said, printed, passed and repeated, in what is summarised and in what stays."""
    said = Turn(
        f"Deploy with the API token {STRONG}: token={STRONG}. Never print that token {STRONG} anywhere.",
        (Round("I read the settings.", (
            Call("c1", "Bash", {"command": "cat .env"}, f"DB_PASSWORD={WEAK}\nDEPLOY_TOKEN={STRONG}\nPORT=5432"),
            Call("c2", "http", {"url": "https://x.test", "auth": {"password": INNER}}, "200 OK"),
        )),),
        f"I use {STRONG} from now on, with the password {INNER}.",
    )  # fmt: skip
    return openai([said, *garden(10), Turn(f"And again: token={STRONG}", closes="Understood.")])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "x.jsonl").write_bytes(jsonl(planted()))
    return tmp_path


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer([honest]) as found:
        monkeypatch.setenv("OPENAI_API_BASE", found.base)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing-to-see")
        yield found


def told(done: Done, here: Path, *without: str) -> str:
    """All that was said and written, but for the transcripts themselves."""
    written = [path.read_text() for path in here.rglob("*") if path.is_file() and path.name not in without]
    return "\n".join([done.out.decode(), done.err, *written])


def assert_nothing_leaks(text: str) -> None:
    assert not [secret for secret in (STRONG, INNER, f"PASSWORD={WEAK}") if secret in text]


@pytest.mark.parametrize("model", [(), ("-m", "openai/gpt-4o")], ids=("offline", "model"))
def test_no_secret_reaches_a_summary_a_block_a_log_or_a_model(here: Path, server: OpenAIServer, model: Any) -> None:
    done = compact("run", "x.jsonl", *model, "--keep", "2", "-v")
    assert done.code == 0, done.err
    assert_nothing_leaks(told(done, here, "x.jsonl", "x.compacted.jsonl"))
    assert_nothing_leaks(json.dumps(server.requests))
    assert len(server.requests) == bool(model)
    block = next(line for line in (here / "x.compacted.jsonl").read_text().splitlines() if "compressed record" in line)
    assert_nothing_leaks(block)
    rules = json.loads((here / "x.summary.json").read_bytes())["snapshot"]["constraints"]
    assert any("Never print that token [secret token " in rule["quote"] for rule in rules)


def test_a_placeholder_leads_back_to_the_line_where_the_value_stands(here: Path) -> None:
    source = redacted(formats.read((here / "x.jsonl").read_bytes(), "x.jsonl"))
    text = source.transcripts[0].entries[1].text
    (place,) = set(PLACEHOLDER.findall(text))
    assert place == f"[secret token {source.short}:2]"
    assert STRONG in (here / "x.jsonl").read_text().splitlines()[1]


def test_the_kept_part_stays_as_it_is_and_that_is_said(here: Path) -> None:
    done = compact("run", "x.jsonl", "--keep", "2")
    before, after = (path.read_bytes().splitlines() for path in (here / "x.jsonl", here / "x.compacted.jsonl"))
    assert after[-2:] == before[-2:]
    assert STRONG.encode() in after[-2]
    assert f"secrets in line {len(before) - 1} stay in the part kept verbatim: that is your file" in done.err
    assert "secrets in lines 2, 3, 4, 6 are masked in the summary and for any model" in done.err


def test_a_dry_run_and_the_prompt_show_none(here: Path) -> None:
    for command in (("run", "x.jsonl", "-n", "-v"), ("prompt", "x.jsonl"), ("prompt", "x.jsonl", "--json")):
        done = compact(*command, "--keep", "2")
        assert done.code == 0, done.err
        assert_nothing_leaks(done.out.decode() + done.err)


def test_without_redaction_it_is_said_what_that_shows(here: Path) -> None:
    done = compact("run", "x.jsonl", "--keep", "2", "--no-redact")
    assert "go to the model and into the summary as they are (--no-redact)" in done.err
    assert STRONG in (here / "x.summary.json").read_text()
    assert compact("verify", "x.summary.json", "x.jsonl").code == 0


def test_a_summary_stands_against_the_masked_sources(here: Path) -> None:
    assert compact("run", "x.jsonl", "--keep", "2").code == 0
    done = compact("verify", "x.summary.json", "x.jsonl", "x.compacted.jsonl")
    assert done.code == 0, done.err
    assert_nothing_leaks(done.out.decode() + done.err)


def test_what_an_earlier_snapshot_told_is_masked_when_it_is_folded(here: Path) -> None:
    assert compact("run", "x.jsonl", "--keep", "12", "--no-redact").code == 0
    more = jsonl([{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "I do. " * 400}])
    (here / "y.jsonl").write_bytes((here / "x.compacted.jsonl").read_bytes() + more)
    (here / "x.summary.json").rename(here / "before.summary.json")
    done = compact("run", "y.jsonl", "--keep", "1")
    assert done.code == 0, done.err
    assert_nothing_leaks((here / "y.summary.json").read_text())


def test_a_reused_prefix_is_refused_where_it_holds_secrets(server: OpenAIServer) -> None:
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--reuse-prefix", "--keep", "2")
    assert done.code == 2
    assert "its messages hold secrets (line 2), which no model is sent without --no-redact" in done.err
    assert not server.requests


def test_the_library_masks_too(server: OpenAIServer) -> None:
    result = compactor.compact(planted(), "openai/gpt-4o", keep=2)
    assert result.snapshot
    assert_nothing_leaks(result.snapshot.model_dump_json())
    assert_nothing_leaks(json.dumps(server.requests))
    assert STRONG in json.dumps(result.messages[-2:])
    state = compactor.maybe_compact(compactor.ConvState(planted()), budget=2_000, keep=2)
    assert state.summary
    assert_nothing_leaks(state.summary.model_dump_json())


def test_masking_changes_no_byte_and_nothing_else(here: Path) -> None:
    raw = (here / "x.jsonl").read_bytes()
    source = formats.read(raw, "x.jsonl")
    view = redacted(source)
    assert write(view) == raw
    assert [e.raw for e in view.transcripts[0].entries] == [e.raw for e in source.transcripts[0].entries]
    clean = formats.read(jsonl(openai(garden(3))), "y.jsonl")
    assert redacted(clean).transcripts is clean.transcripts


def test_weak_words_are_masked_beside_their_names_only() -> None:
    text = "postgres://postgres:postgres@localhost/shop runs the image postgres:16"
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "postgres it is"}]
    view = redacted(formats.read(jsonl(messages), "x"))
    first, second = view.transcripts[0].entries
    assert first.text.count("postgres") == 3
    assert "postgres:[secret password " in first.text
    assert second.text == "postgres it is"


def test_a_secret_in_arguments_is_masked_escaped_and_not() -> None:
    secret = f'a"b{made(12)}'
    call = Call("c", "login", {"password": secret, "note": f"it is {secret}"}, "ok")
    view = redacted(formats.read(jsonl(openai([Turn("Log in.", (Round("", (call,)),))])), "x"))
    part = next(part for entry in view.transcripts[0].entries for part in entry.parts if part.kind == "call")
    assert redact.masked(part.text)
    assert secret not in str(part.input)
    assert secret not in part.text
    assert json.dumps(secret)[1:-1] not in part.text


@pytest.mark.parametrize("seed", range(4))
def test_no_form_of_secret_survives_in_any_speaker(seed: int) -> None:
    """Each text of the table, told by each speaker in turn: nothing that was found is left in any view."""
    pairs = list(zip(SECRETS.items(), cycle(("user", "assistant", "system")), strict=False))
    order = random.Random(seed).sample(pairs, len(pairs))
    messages = [{"role": who, "content": text} for (text, _), who in order]
    view: Source = redacted(formats.read(jsonl([{"role": "user", "content": "Hello."}, *messages]), "x"))
    texts = "\n".join(part.text for entry in view.transcripts[0].entries for part in entry.parts)
    said = "\n".join(piece for e in view.transcripts[0].entries for part in e.parts for piece in part.said)
    values = {text[leak.start : leak.end] for text in SECRETS for leak in leaks(text) if leak.sure}
    assert not [value for value in values if value in texts or value in said]
