"""Law 6: a fold never drops an item; what ends one has evidence; folding again changes nothing."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from strategies import folds

from compactor.fold import SINGLE, fold
from compactor.snapshot import (
    TYPES,
    Added,
    Approval,
    Artifact,
    Authority,
    Close,
    Constraint,
    Decision,
    Fact,
    Item,
    NextAction,
    Objective,
    OpenLoop,
    Rejection,
    Snapshot,
    Supersede,
    Update,
)

Fold = tuple[Snapshot, Update]
A = "0a1b2c3d:1"
B = "0a1b2c3d:2"
C = "ffffffff:3"


def adding(**fields: Item) -> Update:
    return Update(add=Added(**dict(Snapshot.of_fields({name: (item,) for name, item in fields.items()}))))


def folded(*updates: Update) -> Snapshot:
    snapshot: Snapshot | None = None
    for update in updates:
        snapshot = fold(snapshot, update)
    assert snapshot
    return snapshot


def states(snapshot: Snapshot, name: str) -> list[tuple[str, str, str]]:
    return [(item.id, item.text, item.status) for item in snapshot.of(name)]


# Properties


@given(folds())
def test_every_item_of_the_previous_snapshot_is_in_the_new_one(pair: Fold) -> None:
    previous, update = pair
    now = {item.id: (name, item) for name, item in fold(previous, update).items()}
    for name, item in previous.items():
        assert item.id in now
        assert now[item.id][0] == name
        if item.status != "active":
            assert now[item.id][1] == item


@given(folds())
def test_what_ends_an_item_has_evidence(pair: Fold) -> None:
    previous, update = pair
    before = {item.id: item.status for _, item in previous.items()}
    for _, item in fold(previous, update).items():
        if item.status != before.get(item.id, "active"):
            assert item.change
            assert before.get(item.id, "active") == "active"
        if item.status == "superseded" and before.get(item.id, "active") == "active":
            assert item.by != item.id


@given(folds())
@settings(max_examples=120)
def test_folding_the_same_update_again_changes_nothing(pair: Fold) -> None:
    previous, update = pair
    once = fold(previous, update)
    assert fold(once, update) == once


@given(folds())
def test_ids_are_unique_and_tell_their_field(pair: Fold) -> None:
    ids = [(name, item.id) for name, item in fold(*pair).items()]
    assert max(Counter(id for _, id in ids).values(), default=1) == 1
    assert all(id[0] == TYPES[name].letter and int(id[1:]) > 0 for name, id in ids)


@given(folds())
def test_at_most_one_objective_and_one_next_action_are_active(pair: Fold) -> None:
    previous, update = pair
    snapshot = fold(previous.replace(objective=(), next_action=()), update)
    for name in SINGLE:
        assert sum(item.status == "active" for item in snapshot.of(name)) <= 1


@given(folds())
def test_every_added_item_is_held_with_its_evidence(pair: Fold) -> None:
    previous, update = pair
    snapshot = fold(previous, update)
    for name, item in Snapshot(**dict(update.add)).items():
        assert any(set(item.evidence) & set(held.evidence) for held in snapshot.of(name))


# Adding


def test_new_items_are_numbered_after_the_highest_id() -> None:
    previous = Snapshot(facts=(Fact(id="F7", text="seven", evidence=(A,)), Fact(id="F2", text="two", evidence=(A,))))
    assert [item.id for item in fold(previous, adding(facts=Fact(text="new", evidence=(B,)))).facts] == [
        "F7",
        "F2",
        "F8",
    ]


def test_the_same_rule_said_again_is_one_item_with_the_evidence_of_both() -> None:
    first = Constraint(text="Never push!", quote="Never push!", said_by="user", evidence=(A,))
    again = first.model_copy(update={"text": "never  push", "quote": "never  push", "evidence": (B,)})
    (item,) = folded(adding(constraints=first), adding(constraints=again)).constraints
    assert (item.id, item.quote, item.evidence) == ("C1", "never  push", (A, B))


def test_a_file_is_the_same_by_its_path_and_has_its_newest_state() -> None:
    seen = Artifact(path="src/a.py", text="looked at", state="read", evidence=(A,))
    changed = Artifact(path="src/a.py", text="now has x", state="modified", evidence=(B,))
    other = Artifact(path="src/A.py", text="looked at", state="read", evidence=(C,))
    snapshot = folded(adding(artifacts=seen), adding(artifacts=changed), adding(artifacts=other))
    assert [(item.id, item.state) for item in snapshot.artifacts] == [("P1", "modified"), ("P2", "read")]


def test_permissions_of_different_scope_are_not_joined() -> None:
    def granted(scope: str, ref: str) -> Update:
        item = Authority(text="go ahead", quote="go ahead", granted_by="user", scope=scope, evidence=(ref,))
        return adding(authority=item)

    snapshot = folded(
        granted("deploy to staging", A), granted("deploy to production", B), granted("deploy to staging", C)
    )
    assert [(item.scope, item.evidence) for item in snapshot.authority] == [
        ("deploy to staging", (A, C)),
        ("deploy to production", (B,)),
    ]


def test_facts_that_differ_by_a_sign_are_two() -> None:
    snapshot = folded(*(adding(facts=Fact(text=f"from a.py `if x {sign} 1`", evidence=(A,))) for sign in ("==", "!=")))
    assert [item.id for item in snapshot.facts] == ["F1", "F2"]


def test_what_the_newer_item_leaves_open_stays() -> None:
    approved = Decision(text="use sqlite", why="no server", approved_by=Approval(who="user", ref=A), evidence=(A,))
    again = Decision(text="Use sqlite.", evidence=(B,))
    (item,) = folded(adding(decisions=approved), adding(decisions=again)).decisions
    assert (item.text, item.why, item.approved_by) == ("Use sqlite.", "no server", approved.approved_by)


def test_of_old_evidence_the_oldest_is_kept_and_of_the_new_all() -> None:
    refs = [f"0a1b2c3d:{line}" for line in range(1, 30)]
    snapshot = folded(*(adding(facts=Fact(text="x", evidence=(ref,))) for ref in refs[:9]))
    assert snapshot.facts[0].evidence == (*refs[:3], refs[8])
    snapshot = fold(snapshot, adding(facts=Fact(text="x", evidence=tuple(refs[10:18]))))
    assert snapshot.facts[0].evidence == (*refs[:3], *refs[10:18])


def test_what_one_update_says_twice_has_the_evidence_of_both() -> None:
    refs = [f"0a1b2c3d:{line}" for line in range(1, 9)]
    twice = (Fact(text="x", evidence=tuple(refs)), Fact(text="x", evidence=(C,)))
    update = Update(add=Added(facts=twice), close=(Close(id="facts[0]", evidence=(B,)),))
    (item,) = folded(update).facts
    assert item.evidence == (*refs, C)
    assert folded(update, update) == folded(update)


def test_what_was_closed_opens_again_only_on_new_evidence() -> None:
    loop = OpenLoop(text="the test fails", owner="agent", evidence=(A,))
    closed = folded(adding(open_loops=loop), Update(close=(Close(id="L1", evidence=(B,)),)))
    assert fold(closed, adding(open_loops=loop)) == closed
    again = fold(closed, adding(open_loops=loop.model_copy(update={"evidence": (C,)})))
    assert states(again, "open_loops") == [("L1", loop.text, "closed"), ("L2", loop.text, "active")]


@pytest.mark.parametrize(
    "marks", [{"status": "closed"}, {"status": "superseded", "by": "D9"}, {"shown": False}, {"id": "D7"}]
)
def test_an_added_item_is_active_and_shown_whatever_it_says_of_itself(marks: dict[str, Any]) -> None:
    decision = Decision(text="use sqlite", evidence=(A,))
    previous = folded(adding(decisions=decision))
    (item,) = fold(previous, adding(decisions=decision.model_copy(update=marks))).decisions
    assert item == previous.decisions[0]


@pytest.mark.parametrize(("name", "kind"), [("objective", Objective), ("next_action", NextAction)])
def test_a_new_objective_or_next_action_supersedes_the_one_before(name: str, kind: type[Item]) -> None:
    first, second = (adding(**{name: kind(text=text, evidence=(ref,))}) for text, ref in (("one", A), ("two", B)))
    old, new = folded(first, second).of(name)
    assert (old.status, old.by, old.change) == ("superseded", new.id, (B,))
    assert new.status == "active"


# Ending


def test_items_are_closed_and_superseded_by_id() -> None:
    previous = folded(
        adding(open_loops=OpenLoop(text="fix it", evidence=(A,)), decisions=Decision(text="use pg", evidence=(A,))),
        adding(decisions=Decision(text="use sqlite", evidence=(B,))),
    )
    update = Update(close=(Close(id="L1", evidence=(C,)),), supersede=(Supersede(id="D1", by="D2", evidence=(B,)),))
    snapshot = fold(previous, update)
    assert (snapshot.open_loops[0].status, snapshot.open_loops[0].change) == ("closed", (C,))
    assert [(d.status, d.by, d.change) for d in snapshot.decisions] == [("superseded", "D2", (B,)), ("active", "", ())]


def test_items_are_closed_and_superseded_by_their_place_in_the_update() -> None:
    previous = folded(adding(authority=Authority(text="edit a.py", quote="edit a.py", evidence=(A,))))
    new = [Authority(text=text, quote=text, evidence=(B,)) for text in ("edit tests/", "edit docs/")]
    update = Update(
        add=Added(authority=tuple(new)),
        supersede=(Supersede(id="A1", by="authority[0]", evidence=(B,)),),
        close=(Close(id="authority[1]", evidence=(C,)),),
    )
    assert [(a.id, a.status, a.by) for a in fold(previous, update).authority] == [
        ("A1", "superseded", "A2"),
        ("A2", "active", ""),
        ("A3", "closed", ""),
    ]


def test_a_place_in_the_update_names_the_item_it_was_joined_with() -> None:
    rejection = Rejection(text="redis", evidence=(A,))
    update = Update(add=Added(rejected=(rejection,)), close=(Close(id="rejected[0]", evidence=(B,)),))
    assert states(fold(folded(adding(rejected=rejection)), update), "rejected") == [("R1", "redis", "closed")]


@pytest.mark.parametrize(
    "update",
    [
        Update(close=(Close(id="D1"),)),
        Update(supersede=(Supersede(id="D1", by="D2"),)),
        Update(supersede=(Supersede(id="D1", by="D1", evidence=(C,)),)),
        Update(supersede=(Supersede(id="D1", by="D9", evidence=(C,)),)),
        Update(supersede=(Supersede(id="D1", by="", evidence=(C,)),)),
        Update(close=(Close(id="D9", evidence=(C,)), Close(id="", evidence=(C,)), Close(id="facts[0]", evidence=(C,)))),
    ],
)
def test_nothing_ends_without_evidence_or_by_what_does_not_exist(update: Update) -> None:
    previous = folded(*(adding(decisions=Decision(text=text, evidence=(A,))) for text in ("use pg", "use sqlite")))
    assert fold(previous, update) == previous


def test_what_ended_once_keeps_its_reason() -> None:
    previous = folded(
        adding(facts=Fact(text="x", evidence=(A,))),
        Update(close=(Close(id="F1", evidence=(B,)),)),
    )
    assert fold(previous, Update(close=(Close(id="F1", evidence=(C,)),))) == previous
