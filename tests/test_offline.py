"""The summary that needs no model: what binds is in it, all of it is borne out, and it fits."""

import re

import pytest
from build import FORMS, Form, Talk, call, ledger, where
from hypothesis import given
from hypothesis import strategies as st
from strategies import talks

from compactor import pipeline
from compactor.evidence import Evidence
from compactor.fold import fold
from compactor.offline import offline, supplement
from compactor.pipeline import Options, Outcome
from compactor.render import render, shown
from compactor.snapshot import Snapshot, Update
from compactor.split import Keep
from compactor.transcript import Source
from compactor.verify import case, refs_of, verify


def size(text: str) -> int:
    return len(text) // 4 + 1


def updated(source: Source, previous: Snapshot | None = None, budget: int = 2_000) -> Update:
    return offline(ledger(source), previous, budget, size, source.short)


def summed(talk: Talk, form: Form = "claude-code") -> Snapshot:
    return fold(None, updated(talk.source(form)))


def texts(snapshot: Snapshot, name: str, status: str = "active") -> list[str]:
    return [item.text for item in snapshot.of(name) if item.status == status]


# What holds of every summary


@given(talks(), st.sampled_from(FORMS))
def test_every_item_has_evidence_and_passes_every_check(talk: Talk, form: Form) -> None:
    source = talk.source(form)
    snapshot = fold(None, updated(source))
    verdict = verify(case(snapshot, Evidence([source])))
    assert [str(finding) for finding in verdict.errors] == []
    assert all(item.evidence for _, item in snapshot.items())
    assert verdict.carried == 0


@given(talks(), talks(), st.sampled_from(FORMS))
def test_a_summary_folded_into_the_one_before_passes_every_check(before: Talk, talk: Talk, form: Form) -> None:
    first, second = before.source(form), talk.source(form)
    previous = fold(None, updated(first))
    snapshot = fold(previous, updated(second, previous))
    verdict = verify(case(snapshot, Evidence([first, second]), previous))
    assert [str(finding) for finding in verdict.errors] == []


@given(talks(), st.sampled_from(FORMS), st.integers(200, 3_000))
def test_the_block_is_within_its_budget_unless_what_binds_alone_is_not(talk: Talk, form: Form, budget: int) -> None:
    source = talk.source(form)
    snapshot = fold(None, updated(source, budget=budget))
    bare = size(render(shown(fold(None, updated(source, budget=1))), source.short))
    assert size(render(shown(snapshot), source.short)) <= max(budget, bare)


@given(talks(), st.sampled_from(FORMS))
def test_the_same_conversation_gives_the_same_summary(talk: Talk, form: Form) -> None:
    assert updated(talk.source(form)) == updated(talk.source(form))


@given(talks())
def test_only_what_the_user_said_is_a_rule_or_a_permission(talk: Talk) -> None:
    source = talk.source()
    evidence = Evidence([source])
    for name, item in fold(None, updated(source)).items():
        if name in ("constraints", "authority"):
            assert any(item.text in said for said in evidence.said(refs_of(item)))


@given(talks())
def test_a_tiny_budget_still_holds_all_that_binds(talk: Talk) -> None:
    source = talk.source()
    wide, narrow = (fold(None, updated(source, budget=budget)) for budget in (4_000, 1))
    for name in ("constraints", "authority", "done_criteria", "objective", "in_progress", "next_action"):
        assert narrow.of(name) == wide.of(name)


# What is found


@pytest.mark.parametrize("form", FORMS)
def test_what_the_user_said_stands_in_the_field_it_belongs_to(form: Form) -> None:
    talk = Talk().user("Make the orders webhook idempotent.").agent("Looking.")
    talk.user("Never push to main.").agent("Noted.").user("You can deploy to staging, not to production.").agent(
        "Good."
    )
    talk.user("Let's use sqlite, because pg needs a server.").agent("Done.").user("Done when all tests pass.").agent(
        "Yes."
    )
    snapshot = summed(talk, form)
    assert texts(snapshot, "objective")[0].startswith("Make the orders webhook idempotent.")
    assert texts(snapshot, "constraints") == ["Never push to main.", "Done when all tests pass."]
    assert texts(snapshot, "authority") == ["You can deploy to staging, not to production."]
    assert texts(snapshot, "done_criteria") == ["Done when all tests pass."]
    (decision,) = snapshot.decisions
    assert decision.text == "Let's use sqlite, because pg needs a server."
    assert decision.approved_by
    assert decision.approved_by.who == "user"


def test_a_short_yes_is_a_permission_only_for_what_was_asked() -> None:
    source = Talk().user("Look.").agent("Shall I push the branch to origin?").user("yes").agent("Pushed.").source()
    (granted,) = fold(None, updated(source)).authority
    assert granted.text == "yes"
    assert granted.scope == 'answering "Shall I push the branch to origin?"'
    assert granted.evidence == (where(source, "yes"), where(source, "Shall I push"))
    bold = Talk().user("Look.").agent("**Shall I** push the branch to origin?").user("yes").source()
    assert verify(case(fold(None, updated(bold)), Evidence([bold]))).errors == ()
    nothing_asked = Talk().user("Look.").agent("The log is empty.").user("ok").agent("Yes.")
    assert texts(summed(nothing_asked), "authority") == []


def test_files_commands_plans_and_jobs_are_items() -> None:
    talk = (
        Talk().user("Make the orders webhook idempotent.").planned(lock_the_row="in_progress", write_the_docs="pending")
    )
    talk.agent("I add a lock around the event handler.").wrote(
        "orders/hooks.py", "def handle_event(event_id):\n    lock(event_id)\n"
    )
    talk.ran(
        "pytest tests/test_orders.py", "FAILED tests/test_orders.py::test_twice - KeyError: 'event_id'", failed=True
    )
    talk.ran("make serve_orders", "Command running in background with ID: bg42")
    snapshot = summed(talk)
    (file,) = snapshot.artifacts
    assert (file.path, file.state) == ("orders/hooks.py", "created")
    assert "add a lock around the event handler" in file.text
    assert texts(snapshot, "in_progress")[0] == "lock the row"
    open_loops = texts(snapshot, "open_loops")
    assert "planned: write the docs" in open_loops
    assert "job started and not seen finished: make serve_orders" in open_loops
    assert any("pytest tests/test_orders.py" in text and "KeyError: 'event_id'" in text for text in open_loops)


def test_a_short_request_is_the_objective_where_there_is_no_longer_one() -> None:
    assert texts(summed(Talk().user("Fix it.").read("a.py").agent("Done.")), "objective") == ["Fix it."]
    longer = Talk().user("Hi.").agent("Hi.").user("Fix the parser in src/parse.py.").agent("Done.")
    assert texts(summed(longer), "objective") == ["Fix the parser in src/parse.py."]


def test_a_task_in_progress_cites_where_it_was_named() -> None:
    talk = Talk().user("Review my skills.").tool("TaskCreate", "Task #1 created", subject="Review all 3 skills")
    source = talk.tool("TaskUpdate", "Updated", taskId="1", status="in_progress").source()
    snapshot = fold(None, updated(source))
    assert texts(snapshot, "next_action") == ["in the plan: Review all 3 skills"]
    assert verify(case(snapshot, Evidence([source]))).ok


def test_a_mended_test_is_open_no_more() -> None:
    talk = (
        Talk()
        .user("Fix it.")
        .ran("pytest tests/test_orders.py", "1 failed", failed=True)
        .edited("a.py", "old_line", "new_line")
    )
    snapshot = summed(talk.ran("pytest tests/test_orders.py", "3 passed in 0.2s").agent("It works."))
    assert not [text for text in texts(snapshot, "open_loops") if "fails" in text]
    assert any("3 passed" in text for text in texts(snapshot, "completed"))


def test_an_approved_plan_is_a_decision_of_the_user_and_its_text_is_not() -> None:
    told = "User has approved your plan. You can now start coding."
    talk = (
        Talk().user("Lock it.").tool("ExitPlanMode", told, plan="# Lock the row\n\nNever push. Use select_for_update.")
    )
    snapshot = summed(talk.agent("I start with the lock."))
    (decision,) = snapshot.decisions
    assert "Lock the row" in decision.text
    assert decision.approved_by
    assert texts(snapshot, "constraints") == texts(snapshot, "authority") == []


def test_looking_around_proves_nothing() -> None:
    talk = (
        Talk()
        .user("Move the orders to pg.")
        .ran("git log -3 --oneline", "1a2b3c4 fix orders")
        .agent("The orders are in pg now.")
    )
    assert texts(summed(talk), "completed") == []


def test_the_agents_choice_is_not_called_approved() -> None:
    snapshot = summed(Talk().user("Go.").agent("I decided to use a unique_index on event_id for the orders table."))
    (decision,) = snapshot.decisions
    assert (decision.approved_by, decision.basis) == (None, "reported")


def test_what_the_agent_says_and_nothing_shows_is_only_to_be_verified() -> None:
    talk = Talk().user("Look at hooks.py.").read("hooks.py", "def handle_event(event_id): ...")
    talk.agent("The handler handle_event takes one event_id parameter from callers.")
    talk.agent("The limit_of_events is configured with thirty entries per second.")
    talk.agent("That is all there is to see.")
    snapshot = summed(talk)
    assert [text for text in texts(snapshot, "facts") if "limit_of_events" in text] == []
    assert [text for text in texts(snapshot, "open_loops") if text.startswith("verify: ") and "limit_of_events" in text]


def test_what_the_plan_finished_later_closes_what_stood_open() -> None:
    first = Talk().user("Do it.").planned(lock_the_row="in_progress", write_the_docs="pending")
    previous = summed(first)
    second = (
        Talk()
        .user("Go on.")
        .wrote("docs.md")
        .planned(lock_the_row="completed", write_the_docs="completed")
        .agent("Done.")
    )
    snapshot = fold(previous, updated(second.source(), previous))
    assert "planned: write the docs" in texts(snapshot, "open_loops", "closed")
    assert "lock the row" in texts(snapshot, "in_progress", "closed")
    assert "lock the row" not in texts(snapshot, "in_progress")


# Focus and room, through the whole pipeline


def long_talk() -> Talk:
    talk = Talk().user("Find out which of the parts is slow.")
    for k in range(60):
        talk.ran(f"profile part_{k:02}", f"part_{k:02} spends {k}12 ms in function_{k:02} of module_{k:02} on average")
    return talk.agent("I have measured them all.")


def outcome(talk: Talk, form: Form = "openai", keep: int = 2, **options: object) -> Outcome:
    compacted = pipeline.compact(talk.source(form), Options(Keep(keep), **options))  # type: ignore[arg-type]
    (found,) = compacted.outcomes
    assert found.changed, found.reason
    return found


def test_focus_raises_what_it_names() -> None:
    plain, focused = (
        outcome(long_talk(), max_summary=420),
        outcome(long_talk(), max_summary=420, focus="function_03 of part_03"),
    )
    assert "function_03" not in plain.block
    assert "function_03" in focused.block


@pytest.mark.parametrize("limit", [400, 600, 1_200])
def test_the_room_is_used_and_not_exceeded(limit: int) -> None:
    done = outcome(long_talk(), max_summary=limit)
    tokens = done.plan.counter.text(done.block)
    assert limit * 0.8 <= tokens <= limit


def test_a_name_that_an_account_only_lists_is_told_by_code() -> None:
    shown_lines = "def rotate_lanes(width): keeps the widest lane first\ndef merge_lanes(width): joins two narrow lanes"
    source = (
        Talk()
        .user("Go.")
        .ran("grep -rn 'rotate_lanes|merge_lanes' src", shown_lines)
        .user("And?")
        .agent("That's all.")
        .source()
    )
    account = Update.model_validate({
        "add": {"facts": [
            {"text": "Functions: `rotate_lanes`", "evidence": [f"{source.short}:1"], "basis": "observed"},
            {"text": "Joining two narrow lanes is what `merge_lanes` does", "evidence": [f"{source.short}:1"],
             "basis": "observed"},
        ]}
    })  # fmt: skip
    added = supplement(ledger(source), fold(None, account), 2_000, size, source.short)
    told = "\n".join(item.text for item in added.add.facts)
    assert "def rotate_lanes" in told
    assert "def merge_lanes" not in told


# Public bug reports: what must not happen again


def padded(talk: Talk, turns: int = 20) -> Talk:
    for k in range(turns):
        talk.ran(f"grep -n part_{k} src/file_{k}.py", f"{k}: def part_{k}(value): return value * {k}000\n" * 5)
    return talk


def then(talk: Talk) -> Talk:
    return talk.user("And then?").agent("Then nothing.")


@pytest.mark.parametrize("form", FORMS)
def test_lost_constraints_01_what_was_forbidden_survives_word_for_word(form: Form) -> None:
    talk = padded(Talk().user("Clean up the inbox list. Never delete anything without asking me first."), 60)
    talk.agent("It is clean.").user("And reports must be in Markdown.").agent("Yes.")
    done = outcome(then(talk), form)
    line = where(then(talk).source(form), "Clean up").partition(":")[2]
    assert f'"Clean up the inbox list. Never delete anything without asking me first." [{line}]' in done.block
    assert '"And reports must be in Markdown."' in done.block


IMPERATIVE = re.compile(
    r"^(?:please |now |next,? |then )*"
    r"(?:continue|run|resume|go|ssh|drop|start|do|execute|finish|make|fix|proceed|keep)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("form", FORMS)
def test_lost_constraints_02_a_plan_is_neither_done_nor_permitted_nor_ordered(form: Form) -> None:
    talk = padded(Talk().user("Only plan. Do not change files until I say go."))
    done = outcome(then(talk.agent("Plan: 1) drop table 2) ssh to host and restart")), form)
    assert done.snapshot
    assert texts(done.snapshot, "constraints") == ["Only plan. Do not change files until I say go."]
    assert (
        texts(done.snapshot, "authority")
        == texts(done.snapshot, "decisions")
        == texts(done.snapshot, "completed")
        == []
    )
    for _, item in done.snapshot.items():
        assert not IMPERATIVE.match(item.text)
        assert not IMPERATIVE.match(getattr(item, "next", ""))


@pytest.mark.parametrize("form", FORMS)
def test_lost_constraints_03_the_last_permission_holds_and_the_older_ones_are_superseded(form: Form) -> None:
    talk = padded(Talk().user("Clean the code up.").agent("May I?")).user("You may edit src/a.py only.").agent("Good.")
    talk.user("I take that back, no edits at all.").agent("Good.").user("ok, edit tests/ only.").agent("Good.")
    snapshot = outcome(then(talk), form).snapshot
    assert snapshot
    first, last = snapshot.authority
    (withdrawal,) = snapshot.constraints
    assert (last.text, last.status) == ("ok, edit tests/ only.", "active")
    assert (withdrawal.text, withdrawal.status, withdrawal.by) == (
        "I take that back, no edits at all.",
        "superseded",
        last.id,
    )
    assert (first.text, first.status, first.by) == ("You may edit src/a.py only.", "superseded", withdrawal.id)


def test_a_permission_can_be_withdrawn_after_it_was_compacted() -> None:
    previous = summed(Talk().user("Clean the code up.").agent("May I?").user("You may edit src/a.py.").agent("Good."))
    later = Talk().user("I take that back, no edits at all.").agent("Good.").source()
    snapshot = fold(previous, updated(later, previous))
    assert texts(snapshot, "authority") == []
    assert texts(snapshot, "constraints") == ["I take that back, no edits at all."]


@pytest.mark.parametrize("form", FORMS)
def test_lost_constraints_07_a_failed_attempt_and_what_was_done_instead_survive(form: Form) -> None:
    talk = padded(Talk().user("Write the config.")).tool("Write", "EACCES: permission denied /etc/app.conf", True,
                                                         file_path="/etc/app.conf", content="limit = 1000")  # fmt: skip
    talk.agent("I will write to ~/.config instead").wrote("~/.config/app.conf", "limit = 1000").agent("Written.")
    done = outcome(then(talk), form)
    assert "EACCES: permission denied /etc/app.conf" in done.block
    assert "write to ~/.config instead" in done.block
    assert done.snapshot
    assert "/etc/app.conf" not in [item.path for item in done.snapshot.artifacts]


@pytest.mark.parametrize("answer", ['{"answer":"sqlite"}', "sqlite"])
def test_lost_constraints_09_an_answer_given_through_a_tool_is_a_decision_of_the_user(answer: str) -> None:
    asked = call("q1", "ask_user", q="DB?", options=["pg", "sqlite"])
    talk = padded(Talk().user("Set the database up.")).agent("", asked).result("q1", answer).agent("Good.")
    done = outcome(then(talk))
    assert done.snapshot
    (decision,) = done.snapshot.decisions
    assert decision.text.startswith("sqlite")
    assert decision.approved_by
    assert where(talk.source("openai"), "sqlite", "result").endswith(decision.approved_by.ref.partition(":")[2])
    other = (
        padded(Talk().user("Set it up.")).agent("", call("q1", "fetch", q="DB?")).result("q1", answer).agent("Good.")
    )
    untold = outcome(then(other)).snapshot
    assert untold
    assert texts(untold, "decisions") == []
