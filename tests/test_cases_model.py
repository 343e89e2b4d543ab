"""Public bug reports about asking a model: what was seen there must not happen here. Each test bears its report's name.

Those of language are in test_summarize.py, those of model-output 01 and 05 to 10 in test_ask.py, named in their ids.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answers import asked, honest, transcript, update
from command import compact, names
from servers import Cut, Failure, OpenAIServer
from talks import Call, Round, Turn, anthropic, garden, jsonl, openai

from compactor import formats, pipeline
from compactor.asking import Ask, asking
from compactor.exchange import Reply
from compactor.pipeline import Options
from compactor.reply import read
from compactor.split import Keep
from compactor.tokens import counter_for
from compactor.transcript import BLOCK_START

SESSION = jsonl(openai(garden(8)))
LONG = jsonl(openai(garden(30, 60)))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.jsonl").write_bytes(SESSION)
    return tmp_path


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer([honest]) as found:
        monkeypatch.setenv("OPENAI_API_BASE", found.base)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
        yield found


def tokens(body: Any) -> int:
    return sum(counter_for().text(str(message["content"])) for message in body["messages"])


def test_too_long_during_compaction_01(here: Path, server: OpenAIServer) -> None:
    window = 16_000

    def strict(body: Any) -> Any:
        if tokens(body) + body["max_tokens"] > window:
            return Failure(400, f"This model's maximum context length is {window} tokens.", "context_length_exceeded")
        return honest(body)

    server.script = [strict]
    (here / "x.jsonl").write_bytes(LONG)
    planned = compact("run", "x.jsonl", "-n", "-m", "openai/small", "--window", window, "--json").json["calls"]
    done = compact("run", "x.jsonl", "-m", "openai/small", "--window", window, "--json")
    assert done.code == 0, done.err
    assert done.json["usage"]["calls"] == len(server.requests) == planned > 2


def test_too_long_during_compaction_02(here: Path, server: OpenAIServer) -> None:
    def strict(body: Any) -> Any:
        window = {"small": 9_000, "gpt-4o": 128_000}.get(body["model"], 0)
        if tokens(body) > window:
            return Failure(400, "maximum context length exceeded", "context_length_exceeded")
        return "Not today." if body["model"] == "small" else honest(body)

    server.script = [strict]
    done = compact("run", "x.jsonl", "-m", "openai/small", "--fallback", "openai/tiny,openai/gpt-4o", "--json")
    assert done.code == 0, done.err
    assert done.json["model"] == "openai/gpt-4o"
    assert len([body for body in server.requests if body["model"] == "gpt-4o"]) == 1


def test_too_long_during_compaction_03(here: Path, server: OpenAIServer) -> None:
    assert compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--window", "12000").code == 0
    for body in server.requests:
        assert 0 < body["max_tokens"] <= min(16_384, 12_000 - tokens(body))


def test_too_long_during_compaction_06(here: Path, server: OpenAIServer) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 2_700_000}}
    shown = [{"role": "user", "content": [{"type": "text", "text": f"See {n}."}, image]} for n in range(3)]
    (here / "x.jsonl").write_bytes(jsonl([*openai(garden(8))[:1], *shown, *openai(garden(8), system="")]))
    assert compact("run", "x.jsonl", "-m", "openai/gpt-4o").code == 0
    (body,) = server.requests
    assert len(json.dumps(body)) < 1_000_000
    assert "[image, image/png, 2,025,000 bytes, no. 3]" in asked(body)


def test_orphan_pair_02(here: Path, server: OpenAIServer) -> None:
    """However a window is bordered, a request holds flat text: no call or result stands in it as an object."""
    (here / "x.jsonl").write_bytes(jsonl([*anthropic(garden(30, 60))]))
    assert compact("run", "x.jsonl", "-m", "openai/small", "--window", 9_000).code == 0
    assert len(server.requests) > 2
    for body in server.requests:
        assert not {"tools", "functions"} & set(body)
        assert all(set(message) == {"role", "content"} for message in body["messages"])
        assert all(isinstance(message["content"], str) for message in body["messages"])
        assert not re.search(r'"(?:tool_use|tool_result|tool_calls)"\s*:|"type"\s*:\s*"tool_', asked(body))


def test_model_output_02(here: Path, server: OpenAIServer) -> None:
    server.script = [{"content": '{"add": {"facts": [{"text": "a very long', "finish_reason": "length"}]
    assert compact("run", "x.jsonl", "-m", "openai/gpt-4o").code == 4
    sizes = [len(json.dumps(body["messages"])) for body in server.requests]
    assert len(sizes) <= 2
    assert len(set(sizes)) == 1


GOOD = '{"add": {"objective": [{"text": "Water {all} ```beds```", "evidence": ["1"]}]}}'


@pytest.mark.parametrize(
    "text",
    [f"```json\n{GOOD}\n```", f"Here it is:\n{GOOD}\nHope it helps", GOOD, f"```\n{GOOD}\n```", f"use {{x}}\n{GOOD}"],
)
def test_model_output_03(text: str) -> None:
    assert read(Reply(text), "0" * 8) == read(Reply(GOOD), "0" * 8)


def test_model_output_04(server: OpenAIServer) -> None:
    server.script = [lambda body: f'<think>maybe {{"objective": ["wrong"]}}?</think>\n{honest(body)}']
    assert compact("run", "x.jsonl", "-m", "openai/gpt-4o").code == 0
    assert "wrong" not in Path("x.summary.json").read_text()
    server.script = ['<think>maybe {"objective": ["wrong"]}?']
    assert compact("run", "x.jsonl", "-f", "-m", "openai/gpt-4").code == 4


def test_model_output_09(server: OpenAIServer) -> None:
    def strict(body: Any) -> Any:
        shaped = any({"tool_calls", "tool_call_id"} & set(m) or m["role"] == "tool" for m in body["messages"])
        return Failure(400, "tools must be declared") if shaped and "tools" not in body else honest(body)

    server.script = [strict]
    assert compact("run", "x.jsonl", "-m", "openai/gpt-4o").code == 0


def test_model_output_12(server: OpenAIServer) -> None:
    def odd(body: Any) -> str:
        said = update(asked(body))["add"]
        label = said["objective"][0]["evidence"][0]
        decisions = [{"text": "Use bed 1", "why": "it is near", "evidence": label, "extra": 1}]
        return json.dumps({**said, "facts": None, "decisions": decisions, "notes": {}, "risks": "too much water"})

    def mended(body: Any) -> str:
        assert "cites nothing" in asked(body)
        return json.dumps({"risks": []})

    server.script = [odd, mended]
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--json")
    assert done.code == 0, done.err
    assert len(server.requests) == 2
    snapshot = json.loads(Path("x.summary.json").read_bytes())["snapshot"]
    assert [item["text"] for item in snapshot["decisions"]] == ["Use bed 1"]
    assert snapshot["risks"] == []


def test_request_params_01(server: OpenAIServer) -> None:
    allowed = {"model", "messages", "max_tokens"}

    def strict(body: Any) -> Any:
        odd = sorted(set(body) - allowed)
        return (
            Failure(400, f"Unsupported parameter: '{odd[0]}' is not supported", param=odd[0]) if odd else honest(body)
        )

    server.script = [strict]
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o")
    assert done.code == 0, done.err
    assert [sorted(set(body) - allowed) for body in server.requests] == [["response_format"], []]
    assert "without structured output" in done.err


def test_api_failure_01(here: Path, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compactor.model.LiteLLM._sleep", lambda *_: None)
    server.script = [Failure(429, "slow down", "rate_limit_exceeded")]
    before = hashlib.sha256(SESSION).hexdigest(), (here / "x.jsonl").stat().st_mtime_ns
    done = compact("run", "x.jsonl", "--in-place", "-m", "openai/gpt-4o")
    assert done.code == 4
    assert (
        hashlib.sha256((here / "x.jsonl").read_bytes()).hexdigest(),
        (here / "x.jsonl").stat().st_mtime_ns,
    ) == before
    assert names(here) == ["x.jsonl"]


def test_api_failure_02(here: Path, server: OpenAIServer) -> None:
    (here / "x.jsonl").write_bytes(LONG)
    limit = Failure(429, "slow down", "rate_limit_exceeded", headers={"retry-after-ms": "30"})
    count = compact("run", "x.jsonl", "-n", "-m", "openai/gpt-4o", "--window", "10000", "--json").json["calls"]
    assert count > 6
    server.script = [*[honest] * 6, limit, limit, honest]
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--window", "10000", "--parallel", "--json")
    assert done.code == 0, done.err
    assert done.json["usage"]["calls"] == count
    assert len(server.requests) == count + 2


def test_api_failure_04(server: OpenAIServer) -> None:
    limit = Failure(429, "rate limit: too many tokens per minute", headers={"retry-after-ms": "20"})
    server.script = [limit, honest]
    assert compact("run", "x.jsonl", "-m", "openai/gpt-4o").code == 0
    first, second = server.requests
    assert transcript(asked(first)) == transcript(asked(second))


def test_api_failure_05(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compactor.model.LiteLLM._sleep", lambda *_: None)
    server.script = [Cut()]
    assert compact("run", "x.jsonl", "-m", "openai/gpt-4o").code == 4
    assert len(server.requests) == 2
    assert names(Path()) == ["x.jsonl"]


def test_cost_01(here: Path, server: OpenAIServer) -> None:
    known = compact("run", "x.jsonl", "-n", "-m", "openai/gpt-4o", "--json").json
    assert (known["calls"], known["cost"] > 0, known["tokens_in"] > 0, known["tokens_out"] > 0) == (1, True, True, True)
    assert compact("run", "x.jsonl", "-n", "-m", "openai/unheard-of", "--json").json["cost"] is None
    assert compact("run", "x.jsonl", "-m", "openai/unheard-of", "--json").json["cost"] is None
    assert compact("run", "x.jsonl", "-f", "-m", "openai/gpt-4o", "--max-cost", "0.00001").code == 4
    assert len(server.requests) == 1
    real = compact("run", "x.jsonl", "-f", "-m", "openai/gpt-4o", "--json").json
    assert (real["usage"]["tokens_in"], real["usage"]["tokens_out"]) == (100, 20)
    assert real["cost"] == pytest.approx(100 * 2.5e-6 + 20 * 1e-5)


def test_prior_summary_01(here: Path, server: OpenAIServer) -> None:
    records = openai(garden(8))
    records[1]["content"] = "Never call me anything but Quillon. Plan the water."
    raw, sizes = jsonl(records), list[int]()
    for n in range(5):
        (here / "y.jsonl").write_bytes(raw)
        done = compact("run", "y.jsonl", "-f", "--max-summary", "1500", "-m", "openai/gpt-4o")
        assert done.code == 0, done.err
        out = (here / "y.compacted.jsonl").read_bytes()
        assert out.count(BLOCK_START.encode()) == 1
        assert b"Never call me anything but Quillon." in out
        sizes.append(len(out.splitlines()[1]))
        raw = out + jsonl(openai(garden(14 + n)[8 + n :], system=""))
    assert max(sizes) < 9_000, "1,500 tokens at most"


def test_prior_summary_02(here: Path, server: OpenAIServer) -> None:
    records = openai(garden(8))
    records[1]["content"] = "The budget is 40 EUR. Never spend more."
    (here / "y.jsonl").write_bytes(jsonl(records))
    assert compact("run", "y.jsonl", "-m", "openai/gpt-4o").code == 0
    huge = Turn(
        "Print it.", (Round("", (Call("big", "Bash", {"command": "cat t"}, "row 4711\n" * 20_000),)),), "Printed."
    )
    (here / "z.jsonl").write_bytes((here / "y.compacted.jsonl").read_bytes() + jsonl(openai([huge], system="")))
    assert compact("run", "z.jsonl", "--keep", "1", "-m", "openai/gpt-4o").code == 0
    assert "Never spend more." in (here / "z.compacted.jsonl").read_text()
    again = compact("run", "y.compacted.jsonl", "-m", "openai/gpt-4o", "-o", "-")
    assert again.out == (here / "y.compacted.jsonl").read_bytes()


def test_thinking_signatures_09(here: Path, server: OpenAIServer) -> None:
    thought = "The user wants beds counted, and I weigh whether moss is a bed at all. " * 4
    told: list[dict[str, Any]] = anthropic(garden(8))
    for message in told:
        if message["role"] == "assistant" and isinstance(message["content"], list):
            message["content"].insert(0, {"type": "thinking", "thinking": thought, "signature": "c2ln"})
    (here / "x.jsonl").write_bytes(jsonl(told))

    def refusing(body: Any) -> Any:
        said = "\n".join(str(message["content"]) for message in body["messages"])
        return "I can't help with extracting reasoning." if "whether moss is a bed" in said else honest(body)

    server.script = [refusing]
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--json")
    assert (done.code, done.json["status"]) == (0, "compacted")
    assert compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--thinking", "-o", "y.jsonl").code == 4
    assert thought[:60] not in compact("prompt", "x.jsonl").out.decode()
    assert thought[:60] in compact("prompt", "x.jsonl", "--thinking").out.decode()


def test_summary_inflation_01(here: Path, server: OpenAIServer) -> None:
    few = [{"role": role, "content": text} for _ in range(25) for role, text in (("user", "next"), ("assistant", "ok"))]
    (here / "x.jsonl").write_bytes(jsonl(few))
    server.script = [json.dumps({"objective": [{"text": "word " * 900, "evidence": ["1"]}]})]
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--json")
    assert (done.code, done.json["status"]) == (0, "unchanged")
    assert "not smaller: 250 tokens would become" in done.json["reason"]


def test_summary_inflation_03() -> None:
    output = "\n".join(f"line {n} of the output, value {n * 17}" for n in range(200))
    turn = Turn("Print.", (Round("", (Call("c", "Bash", {"command": "p"}, output),)),))
    source = formats.read(jsonl([*openai([turn]), *openai(garden(8), system="")]), "x")

    class Copies:
        name = "copies"

        def complete(self, request: Any) -> Reply:
            prompt = str(request.messages[-1]["content"])
            assert "copies 3,000 characters of output" in prompt or "code held" not in prompt
            fact = {"text": output[:3_000], "basis": "observed", "evidence": ["4"]}
            goal = [{"text": "Print", "evidence": ["2"], "basis": "stated"}]
            said: dict[str, Any] = {"objective": goal, "next_action": goal, "facts": [fact]}
            return Reply(json.dumps(said if "code held" not in prompt else {"risks": []}))

        def accepted(self, request: Any) -> None:
            """Nothing is kept."""

    given = asking(Ask(Copies(), log=False))
    done = pipeline.compact(source, Options(Keep(4), max_summary=2_000), asking=given).outcomes[0]
    assert done.changed, done.reason
    assert output[:500] not in done.block
    assert any(finding.check == "copied" for finding in done.verdict.repaired)


def test_summary_inflation_04(here: Path, server: OpenAIServer) -> None:
    server.script = [""]
    failed = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--json")
    skipped = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--json", "--budget", "1000000")
    assert [(done.code, done.json["status"]) for done in (failed, skipped)] == [(4, "error"), (0, "unchanged")]
