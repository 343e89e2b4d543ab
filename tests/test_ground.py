"""What the transcript bears is made good by code; what it doesn't bear is left to the checks."""

from typing import Any

import pytest
from build import Talk, entry, human, ledger, said, where

from compactor.evidence import Evidence
from compactor.ground import MOST_CITED, Ground
from compactor.ledger import extract
from compactor.snapshot import (
    Approval,
    Artifact,
    Authority,
    Completed,
    Constraint,
    Decision,
    Fact,
    Item,
    OpenLoop,
    Snapshot,
)
from compactor.transcript import Part, Source, Transcript
from compactor.verify import case, verify

RULE = "Never push to main - ask Ada’s team first (she knows)."
TALK = (
    Talk()
    .user(f"Port the parser. {RULE}")
    .agent("The old grammar is LALR-2.")
    .read("/srv/parser/grammar.py", "GRAMMAR_VERSION = 417")
    .wrote("/srv/parser/tokens.py", "TOKEN_LIMIT = 9000\n")
    .ran("pytest -q", "12 passed in 0.41s")
    .ran("make docs", "wrote docs/index.md")
    .agent("I found that TOKEN_LIMIT is 9000 and the version is 417.")
    .user("Good. You may commit, but only on the branch fix-parser.")
    .agent("Done.")
)
SOURCE = TALK.source()


def ground(source: Source = SOURCE) -> Ground:
    return Ground(source.short, list(source.transcripts[0].story()), ledger(source), Evidence([source]))


def at(words: str, kind: str = "") -> str:
    return where(SOURCE, words, kind)


def checks(field: str, item: Item) -> set[str]:
    """What the checks find on an item."""
    snapshot = Snapshot.of_fields({field: [item.model_copy(update={"id": "X1"})]})
    return {f.check for f in verify(case(snapshot, Evidence([SOURCE]))).findings if f.item == "X1"}


def rule(quote: str, **more: Any) -> Constraint:
    evidence = more.pop("evidence", (at("GRAMMAR_VERSION", "result"),))
    return Constraint(text=quote, quote=quote, said_by="user", evidence=evidence, basis="stated", **more)


@pytest.mark.parametrize(
    "quote",
    [
        "never push to main — ask Ada's team first",
        "Never push to MAIN, ask Ada's team first",
        "Never push to main -- ask Ada’s team first",
    ],
)
def test_a_quote_is_written_as_it_was_said_and_cites_where(quote: str) -> None:
    mended = ground().item(rule(quote))
    assert isinstance(mended, Constraint)
    assert mended.quote == mended.text == "Never push to main - ask Ada’s team first"
    assert at("Port the parser") in mended.evidence
    assert checks("constraints", mended) == set()


def test_a_quote_that_stands_where_it_is_cited_is_left_alone() -> None:
    quote = "ask Ada’s team first (she knows)."
    mended = ground().item(rule(quote, evidence=(at("Port the parser"),)))
    assert isinstance(mended, Constraint)
    assert mended.quote == quote


def test_a_quote_that_nobody_said_is_left_to_the_checks() -> None:
    for quote in ("Never push to a fork.", "Always push to main"):
        mended = ground().item(rule(quote))
        assert "quotes" in checks("constraints", mended)


def test_what_the_agent_said_is_nobodys_rule() -> None:
    assert "quotes" in checks("constraints", ground().item(rule("The old grammar is LALR-2.")))


def test_a_rule_that_only_a_summary_tells_is_marked_as_such() -> None:
    story = [entry(0, Part("text", "summary", "The user said: Never push to main.")), entry(1, human("Go on."))]
    source = Source("x", b"{}\n{}\n", "openai", (Transcript(tuple(story), (0, 1)),))
    given = Ground(source.short, story, extract(source.short, story), Evidence([source]))
    mended = given.item(rule("never push to main.", evidence=(f"{source.short}:2",)))
    assert isinstance(mended, Constraint)
    assert (mended.said_by, mended.basis, mended.text) == ("summary", "reported", "Never push to main.")
    snapshot = Snapshot.of_fields({"constraints": [mended.model_copy(update={"id": "C1"})]})
    assert not [f for f in verify(case(snapshot, Evidence([source]))).errors if f.item == "C1"]


def test_a_permission_is_never_taken_from_a_summary() -> None:
    story = [entry(0, Part("text", "summary", "You may push to main.")), entry(1, human("Go on."))]
    source = Source("x", b"{}\n{}\n", "openai", (Transcript(tuple(story), (0, 1)),))
    given = Ground(source.short, story, extract(source.short, story), Evidence([source]))
    leave = Authority(
        text="You may push to main.", quote="You may push to main.", granted_by="user", evidence=(f"{source.short}:1",)
    )
    snapshot = Snapshot.of_fields({"authority": [given.item(leave).model_copy(update={"id": "A1"})]})
    assert [f.check for f in verify(case(snapshot, Evidence([source]))).errors if f.item == "A1"] == ["quotes"]


@pytest.mark.parametrize("cited", ["call", "result", "proof"])
def test_a_step_is_proven_by_the_result_behind_what_it_cites(cited: str) -> None:
    call, result = at("pytest -q", "call"), at("12 passed", "result")
    evidence, proof = (call if cited == "call" else result,), call if cited == "proof" else ""
    step = Completed(text="The tests pass: 12 passed", evidence=evidence, basis="observed", proof=proof)
    mended = ground().item(step)
    assert isinstance(mended, Completed)
    assert mended.proof == result
    assert checks("completed", mended) == set()


def test_a_step_without_any_result_stays_unproven() -> None:
    step = Completed(text="The parser is ported", evidence=(at("Done."),), basis="reported")
    assert "proof" in checks("completed", ground().item(step))


def test_a_file_cites_the_calls_that_touched_it() -> None:
    file = Artifact(path="tokens.py", text="token limits", state="created", evidence=(at("I found that"),))
    mended = ground().item(file)
    assert isinstance(mended, Artifact)
    assert at("TOKEN_LIMIT", "call") in mended.evidence
    assert checks("artifacts", mended) == set()


def test_a_file_that_a_command_made_cites_the_command() -> None:
    file = Artifact(
        path="docs/index.md", text="the docs", state="created", evidence=(at("wrote docs/index.md", "result"),)
    )
    mended = ground().item(file)
    assert at("make docs", "call") in mended.evidence
    assert checks("artifacts", mended) == set()


def test_a_file_that_nobody_touched_stays_unfounded() -> None:
    file = Artifact(path="/srv/parser/moss.py", text="moss", state="created", evidence=(at("I found that"),))
    assert "artifacts" in checks("artifacts", ground().item(file))


def test_names_cite_entries_that_hold_them() -> None:
    loop = OpenLoop(
        text="Is TOKEN_LIMIT 9000 enough for grammar 417?", owner="agent", evidence=(at("Port the parser"),)
    )
    mended = ground().item(loop)
    assert "identifiers" in checks("open_loops", loop)
    assert checks("open_loops", mended) == set()


def test_a_name_that_stands_nowhere_stays_unfounded() -> None:
    loop = OpenLoop(text="Is TOKEN_LIMIT_2 enough?", owner="agent", evidence=(at("Port the parser"),))
    mended = ground().item(loop)
    assert mended.evidence == loop.evidence
    assert "identifiers" in checks("open_loops", mended)


def test_a_fact_that_only_the_agent_told_cites_what_shows_it() -> None:
    fact = Fact(text="TOKEN_LIMIT is 9000.", evidence=(at("I found that"),), basis="reported")
    mended = ground().item(fact)
    assert mended.basis == "observed"
    assert checks("facts", mended) == set()


def test_what_is_inferred_stays_inferred() -> None:
    fact = Fact(text="TOKEN_LIMIT of 9000 is too low.", evidence=(at("I found that"),), basis="inferred")
    assert ground().item(fact).basis == "inferred"


def test_a_decision_with_an_approver_is_stated() -> None:
    approval = Approval(who="user", ref=at("You may commit"))
    decision = Decision(
        text="Commit on fix-parser", approved_by=approval, evidence=(at("You may commit"),), basis="reported"
    )
    assert ground().item(decision).basis == "stated"


def test_marks_around_a_scope_are_no_part_of_it() -> None:
    quote, scope = "You may commit, but only on the branch fix-parser.", "「only on the branch fix-parser」"
    leave = Authority(text=quote, quote=quote, granted_by="user", scope=scope, evidence=(at("You may commit"),))
    mended = ground().item(leave)
    assert isinstance(mended, Authority)
    assert mended.scope == "only on the branch fix-parser"


def test_an_item_keeps_a_handful_of_refs_that_bear_its_names() -> None:
    words = ("Done.", "Port the parser", "LALR-2", "I found that", "12 passed", "wrote docs", "You may commit")
    everywhere = tuple(dict.fromkeys(map(at, words)))
    loop = OpenLoop(text="Is LALR-2 in docs/index.md?", owner="agent", evidence=everywhere)
    mended = ground().item(loop)
    assert len(mended.evidence) == MOST_CITED
    assert {at("LALR-2"), at("wrote docs")} <= set(mended.evidence)
    assert checks("open_loops", mended) == set()


def test_a_file_keeps_the_call_that_changed_it() -> None:
    words = ("Done.", "Port the parser", "LALR-2", "I found that")
    everywhere = (*map(at, words), where(SOURCE, "make docs", "call"))
    file = Artifact(text="the docs", path="docs/index.md", state="created", evidence=everywhere)
    mended = ground().item(file)
    assert where(SOURCE, "make docs", "call") in mended.evidence


def test_an_item_with_a_name_that_stands_nowhere_keeps_all_that_it_cites() -> None:
    words = ("Done.", "Port the parser", "LALR-2", "I found that", "12 passed", "wrote docs", "You may commit")
    everywhere = tuple(dict.fromkeys(map(at, words)))
    loop = OpenLoop(text="Is LALR-2 or LALR-77 meant?", owner="agent", evidence=everywhere)
    assert ground().item(loop).evidence == everywhere


def test_an_owner_is_given_where_nobody_is_named() -> None:
    mended = ground().item(OpenLoop(text="x", evidence=(at("Done."),)))
    assert isinstance(mended, OpenLoop)
    assert mended.owner == "agent"


def test_a_quote_without_words_is_left_alone() -> None:
    assert ground().item(rule("…")) == rule("…")
    assert said().text


@pytest.mark.parametrize("basis", ["reported", "stated"])
def test_what_only_an_earlier_summary_tells_stands_where_it_says_so(basis: Any) -> None:
    """An approval, and a change of a file: a decision is no permission, and the work was done."""
    told = "The user approved plan B; /srv/parser/lexer.py was changed for it."
    story = [entry(0, Part("text", "summary", told)), entry(1, human("Go on."))]
    source = Source("x", b"{}\n{}\n", "openai", (Transcript(tuple(story), (0, 1)),))
    given = Ground(source.short, story, extract(source.short, story), Evidence([source]))
    here = (f"{source.short}:1",)
    decision = Decision(
        id="D1", text="Plan B", approved_by=Approval(who="user", ref=here[0]), evidence=here, basis=basis
    )
    file = Artifact(
        id="P1", path="/srv/parser/lexer.py", text="for plan B", state="modified", evidence=here, basis=basis
    )
    snapshot = Snapshot.of_fields({"decisions": [given.item(decision)], "artifacts": [given.item(file)]})
    found = {f.item for f in verify(case(snapshot, Evidence([source]))).errors if f.item}
    assert given.item(decision).basis == "reported"
    assert found == (set() if basis == "reported" else {"P1"})
