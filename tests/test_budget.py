"""What the block shows when there isn't room for all: shorten before hiding, in the order that the design lays down."""

from hypothesis import given
from hypothesis import strategies as st
from strategies import FEW, snapshots

from compactor.budget import Fitted, fit
from compactor.render import render
from compactor.snapshot import (
    Artifact,
    Authority,
    Completed,
    Constraint,
    Decision,
    DoneCriterion,
    Fact,
    InProgress,
    Item,
    NextAction,
    Objective,
    OpenLoop,
    Rejection,
    Risk,
    Snapshot,
)

NEWEST = "3f2a9c1d"
PROOF = f"{NEWEST}:9"
BINDING = {
    "objective", "done_criteria", "constraints", "authority", "decisions", "in_progress", "risks", "next_action",
}  # fmt: skip


def worth(item: Item) -> float:
    """What the test says it is: the number at the end of the text."""
    return float(item.text.rpartition(" ")[2])


def fitted(snapshot: Snapshot, limit: int) -> Fitted:
    return fit(snapshot, limit, len, worth, NEWEST, "orders.jsonl", "compact show")


def measured(snapshot: Snapshot, short: bool = False) -> int:
    return len(render(snapshot, NEWEST, record="orders.jsonl", recall="compact show", short=short))


def full() -> Snapshot:
    """Several items of each kind that may be hidden, and one of each that may not."""
    return Snapshot(
        objective=(Objective(id="O1", text="ship"),),
        done_criteria=(DoneCriterion(id="G1", text="all green"),),
        constraints=(Constraint(id="C1", text="never push", quote="never push"),),
        authority=(Authority(id="A1", text="deploy", quote="deploy"),),
        decisions=(Decision(id="D1", text="sqlite"),),
        rejected=(
            Rejection(id="R1", text="redis 9", why="no server"),
            Rejection(id="R2", text="pg 1", why="no server"),
        ),
        facts=tuple(Fact(id=f"F{k}", text=f"fact {w}") for k, w in ((1, 5), (2, 3), (3, 4))),
        artifacts=(
            Artifact(id="P1", text="changed 1", path="a.py", state="modified"),
            Artifact(id="P2", text="seen 7", path="src/orders/webhooks.py"),
            Artifact(id="P3", text="seen 6", path="src/orders/models.py"),
            Artifact(id="P4", text="made 0", path="d.py", state="created"),
        ),
        completed=(
            Completed(id="S1", text="first 9", proof=PROOF),
            Completed(id="S2", text="second 8", proof=PROOF),
            Completed(id="S3", text="third 1", proof=PROOF),
            Completed(id="S4", text="told 0"),
        ),
        in_progress=(InProgress(id="W1", text="handler", next="lock"),),
        open_loops=(
            OpenLoop(id="L1", text="verify: one 2", owner="agent"),
            OpenLoop(id="L2", text="which port?", owner="user"),
            OpenLoop(id="L3", text="verify: two 1", owner="agent"),
        ),
        risks=(Risk(id="K1", text="two at once"),),
        next_action=(NextAction(id="N1", text="run pytest"),),
    )


ORDER = ["R1", "R2", "S1", "S2", "S4", "P3", "P2", "P4", "P1", "F2", "F3", "F1", "L3", "L1"]
"""Rejections; steps, oldest first, the last proof apart; files only read, other files, facts, each by worth; verify."""


def not_shown(snapshot: Snapshot) -> list[str]:
    return [item.id for _, item in snapshot.items() if not item.shown]


def test_with_room_for_all_all_is_shown() -> None:
    now = fitted(full(), measured(full()))
    assert (not_shown(now.snapshot), now.short, now.over, now.tokens) == ([], False, False, measured(full()))


def test_what_was_hidden_before_is_shown_again_when_there_is_room() -> None:
    before = full().map(lambda name, item: item.model_copy(update={"shown": name != "facts"}))
    assert not_shown(fitted(before, measured(full())).snapshot) == []


def test_rejections_lose_their_reasons_before_anything_is_hidden() -> None:
    for limit in (measured(full()) - 1, measured(full(), short=True)):
        now = fitted(full(), limit)
        assert (not_shown(now.snapshot), now.short, now.over) == ([], True, False)
        assert now.tokens == measured(full(), short=True)


def test_without_reasons_to_drop_nothing_is_called_short() -> None:
    bare = full().replace(rejected=[item.model_copy(update={"why": ""}) for item in full().rejected])
    now = fitted(bare, measured(bare) - 1)
    assert not_shown(now.snapshot)[0] == "R1"
    assert not now.short


def test_items_are_hidden_one_after_another_in_the_order_of_the_design() -> None:
    seen: list[str] = []
    for limit in range(measured(full(), short=True) - 1, 0, -6):
        now = fitted(full(), limit)
        gone = set(not_shown(now.snapshot))
        assert gone == set(ORDER[: len(gone)])
        seen += [id for id in ORDER if id in gone and id not in seen]
        assert now.over == (now.tokens > limit)
        assert now.over is False or gone == set(ORDER)
    assert seen == ORDER


def test_what_binds_stays_whatever_the_limit_and_the_result_says_that_it_is_over() -> None:
    now = fitted(full(), 1)
    assert now.over
    assert now.tokens == measured(now.snapshot, short=True) > 1
    shown = {item.id for _, item in now.snapshot.items() if item.shown}
    assert shown == {"O1", "G1", "C1", "A1", "D1", "S3", "W1", "L2", "K1", "N1"}


def test_what_ended_is_neither_counted_nor_hidden() -> None:
    closed = Fact(id="F9", text="closed 0", status="closed", change=(PROOF,))
    snapshot = full().replace(facts=(*full().facts, closed))
    assert "F9" not in not_shown(fitted(snapshot, 1).snapshot)


@given(snapshots(6, FEW), st.integers(0, 4_000))
def test_the_budget_changes_only_what_is_shown(snapshot: Snapshot, limit: int) -> None:
    now = fit(snapshot, limit, len, lambda item: len(item.text), NEWEST, "", "")
    plain = [(name, item.model_copy(update={"shown": True})) for name, item in snapshot.items()]
    assert [(name, item.model_copy(update={"shown": True})) for name, item in now.snapshot.items()] == plain
    assert now.tokens == len(render(now.snapshot, NEWEST, short=now.short))
    assert now.over == (now.tokens > limit)
    for name, item in now.snapshot.items():
        if not item.shown:
            assert name not in BINDING
            assert name != "open_loops" or item.text.startswith("verify: ")
