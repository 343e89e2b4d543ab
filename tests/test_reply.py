"""A model's reply is foreign input: read leniently, completed never."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.errors import CutOffError, ModelError
from compactor.exchange import Reply
from compactor.reply import ALSO, read
from compactor.snapshot import TYPES, Update

SOURCE = "3f2a9c1d"
GOOD = {"add": {"objective": [{"text": "Port the parser", "evidence": ["1"], "basis": "stated"}]}}
TEXT = json.dumps(GOOD)


def update(text: str) -> Update:
    return read(Reply(text), SOURCE).update


def goal(text: str) -> str:
    (item,) = update(text).add.objective
    return item.text


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```",
        f"Here it is:\n{TEXT}\nHope it helps {{really}}",
        f"As you say, use {{x}} and {{y: 1}}.\n{TEXT}",
        f'For example {{"a": 1}} is JSON.\n{TEXT}',
        f"\ufeff  {TEXT}  ",
        f'<think>maybe {{"objective": "wrong"}}?</think>\n{TEXT}',
        f"<think>a</think>\n<think>b</think>{TEXT}",
        json.dumps(GOOD["add"]),
        json.dumps({"goal": GOOD["add"]["objective"]}),
        json.dumps({**GOOD, "notes": "an extra key", "close": None, "supersede": None}),
        json.dumps({"add": {"objective": GOOD["add"]["objective"][0], "facts": None}}),
    ],
)
def test_what_is_put_up_with(text: str) -> None:
    assert goal(text) == "Port the parser"


def test_a_fence_inside_a_value_is_no_end() -> None:
    assert (
        goal(json.dumps({"objective": [{"text": "Write ```x``` and {y}", "evidence": ["1"]}]}))
        == "Write ```x``` and {y}"
    )


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply('{"add": {"objective": [{"text": "port the par', "length"), "cut off at the output limit"),
        (Reply(TEXT, "length"), "cut off at the output limit"),
        (Reply("", "length", reasoning=True), "its reasoning took the room"),
        (Reply('{"add": {"objective": [{"text": "port the par'), "breaks off"),
        (Reply(f'{TEXT[:-1]}, "close": [{{"id": "D1", "ev'), "breaks off"),
        (Reply("<think>so many thoughts"), "reasoning isn't closed"),
        (Reply(""), "it is empty"),
        (Reply("  \n"), "it is empty"),
        (Reply("", reasoning=True), "only reasoning"),
        (Reply("{}"), "no JSON object"),
        (Reply('{"add": {}}'), "nothing in it"),
        (Reply('{"add": {"objective": [{"text": ""}], "facts": []}}'), "nothing in it"),
        (Reply("I can't help with summarising this."), "the model refused"),
        (Reply("I'm sorry, but " + "as an AI " * 200), "the model refused"),
        (Reply("", refusal="Not this one."), 'the model refused: "Not this one."'),
        (Reply(TEXT, "content_filter"), "finish reason content_filter"),
        (Reply("", "tool_calls"), "called a tool"),
        (Reply("Sure! I have now fixed the test, next I will run it."), "may go on with the chat"),
        (Reply('Sure, I write {"files": ["a.py"], "done": "all tests pass"}.'), "no JSON object"),
        (Reply('{"done": "all tests pass"}'), "no JSON object"),
        (Reply("upstream connect error or disconnect/reset before headers"), "no JSON object"),
    ],
)
def test_what_is_no_update_is_said_as_such(reply: Reply, words: str) -> None:
    with pytest.raises(ModelError, match="can't be used") as failed:
        read(reply, SOURCE)
    assert words in str(failed.value)
    assert isinstance(failed.value, CutOffError) == (reply.finish == "length")


@given(st.integers(1, len(TEXT) - 1))
def test_a_reply_that_breaks_off_anywhere_is_never_completed(at: int) -> None:
    with pytest.raises(ModelError):
        read(Reply(TEXT[:at]), SOURCE)


@pytest.mark.parametrize(
    ("given", "refs"),
    [
        (["41"], ["41"]), ("41", ["41"]), (41, ["41"]), (["[41/2]"], ["41/2"]), (["41, 42"], ["41", "42"]),
        (["41-47"], ["41", "47"]), (["41.2/3"], ["41.2/3"]), ([f"{SOURCE}:41"], ["41"]), (["line 41"], ["41"]),
        (["L41", "#42"], ["41", "42"]), (None, []), (["soon", 0, "0", {}], []), (["41", "41"], ["41"]),
    ],
)  # fmt: skip
def test_labels_become_refs(given: Any, refs: list[str]) -> None:
    (item,) = update(json.dumps({"objective": [{"text": "x", "evidence": given}]})).add.objective
    assert list(item.evidence) == [f"{SOURCE}:{ref}" for ref in refs]


def test_a_letter_leads_to_an_older_source() -> None:
    text = json.dumps({"close": [{"id": "L2", "evidence": ["A41", "B3", "7"]}]})
    (closing,) = read(Reply(text), SOURCE, {SOURCE: "", "0a0a0a0a": "A"}).update.close
    assert closing.evidence == ("0a0a0a0a:41", f"{SOURCE}:7")


def item(field: str, **values: Any) -> Any:
    (found,) = getattr(update(json.dumps({field: [{"evidence": ["3"], **values}]})).add, field)
    return found


def test_what_a_field_leaves_out_is_usual() -> None:
    rule = item("constraints", quote="Never push.")
    assert (rule.text, rule.quote, rule.said_by, rule.basis) == ("Never push.", "Never push.", "user", "stated")
    decision = item("decisions", text="x", scope="")
    assert (decision.scope, decision.state, decision.approved_by) == ("not stated", "accepted", None)
    assert item("artifacts", path="/a", role="the parser").text == "the parser"
    assert item("artifacts", path="/a", state="Created", text="x").state == "created"
    assert item("facts", text="x", basis="seen").basis == "observed"


def test_an_approval_needs_a_ref() -> None:
    approved = item("decisions", text="x", approved_by={"who": "user", "ref": "[9]"})
    assert approved.approved_by.ref == f"{SOURCE}:9"
    assert item("decisions", text="x", approved_by={"who": "user", "ref": "soon"}).approved_by is None
    assert item("decisions", text="x", approved_by="user").approved_by is None


def test_an_item_that_cannot_be_taken_is_told_with_the_reason_and_the_others_stay() -> None:
    text = {"artifacts": [{"path": "/a", "state": "shredded", "evidence": ["3"]}, {"path": "/b", "text": "b"}]}
    found = read(Reply(json.dumps(text)), SOURCE)
    assert [one.path for one in found.update.add.artifacts] == ["/b"]
    (problem,) = found.problems
    assert problem.startswith("artifacts: state:")
    assert "shredded" in problem


def test_places_are_counted_as_the_model_counts() -> None:
    items = [{"path": "/a", "state": "shredded"}, {"path": "/b", "text": "b"}]
    text = {"add": {"artifacts": items}, "supersede": [{"id": "P1", "by": "artifacts[1]", "evidence": ["3"]}]}
    (change,) = read(Reply(json.dumps(text)), SOURCE).update.supersede
    assert change.by == "artifacts[0]"


@pytest.mark.parametrize("name", sorted(ALSO))
def test_other_published_names_are_known(name: str) -> None:
    found = update(json.dumps({name: [{"text": "a text", "evidence": ["1"]}]})).add
    assert [one.text for one in getattr(found, ALSO[name])] == ["a text"]
    assert ALSO[name] in TYPES


KEYS = st.sampled_from([*TYPES, "add", "close", "text", "evidence", "state"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_whatever_comes_is_read_or_refused(value: Any) -> None:
    try:
        found = read(Reply(json.dumps(value)), SOURCE)
    except ModelError:
        return
    assert found.update != Update() or found.problems
