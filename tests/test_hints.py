"""What the ledger has a model keep."""

from build import Talk

from compactor.hints import NAMES, hints
from compactor.ledger import extract
from compactor.tokens import counter_for

TALK = (
    Talk()
    .user("Port the parser. Never push to main.")
    .asked("Shall I use Lark or PLY?", "Lark")
    .wrote("/srv/parser/tokens.py", "TOKEN_LIMIT = 9000\n")
    .ran("git commit -qm tokens", "[fix a1b2c3d] tokens")
    .edited("/srv/parser/grammar.py", "a", "GRAMMAR_VERSION = 417")
    .ran("pytest -q", "1 failed\nFAILED test_tokens.py::test_limit - assert 9000 == 9001", True)
    .refused("git push", "not before Friday")
    .user("How far are you?")
)


def told(talk: Talk = TALK, room: int = 2_000, labels: set[str] | None = None) -> str:
    source = talk.source()
    story = list(source.transcripts[0].story())
    lines = {str(entry.line) for entry in story} if labels is None else labels
    return hints(extract(source.short, story), lines, room, counter_for().text)


def section(heading: str) -> list[str]:
    lines = told().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(heading))
    return [line for line in lines[at + 1 :] if line.startswith("- ")][:3]


def test_words_that_bind_are_listed_with_what_they_answer() -> None:
    assert '"Port the parser. Never push to main."' in told()
    assert '"Lark" (to: "Shall I use Lark or PLY?")' in told()


def test_what_was_said_last_is_listed() -> None:
    assert '"How far are you?"' in section("What else the user said last")[0]


def test_a_refusal_is_listed_with_the_users_words() -> None:
    assert 'Bash: git push: "not before Friday"' in section("What the user refused")[0]


def test_files_are_listed_and_those_not_committed_apart() -> None:
    both = section("Files that were made")
    assert both[0].startswith("- created /srv/parser/tokens.py [")
    assert section("Of these, changed after the last `git commit`")[0] == "- /srv/parser/grammar.py"


def test_a_failing_test_is_listed() -> None:
    assert "test_limit" in section("Tests that failed")[0]


def test_names_that_will_be_used_again_are_listed_and_small_numbers_are_not() -> None:
    names = told().splitlines()[-1].split("; ")
    assert len(names) <= NAMES
    assert any(name.startswith("GRAMMAR_VERSION [") for name in names)
    assert not any(name.split()[0] in ("9000", "417") for name in names)


def test_what_stands_for_nothing_by_itself_is_no_name_to_keep() -> None:
    noise = ("/dev/null", "//nolint", "in_progress", "A2")
    said = f"GRAMMAR_LIMIT goes with {' and '.join(noise)}"
    names = told(Talk().user("Go.").ran("make lint", said).agent(said)).splitlines()[-1]
    assert "GRAMMAR_LIMIT [" in names
    assert [name for name in noise if name in names] == []


def test_only_what_stands_in_the_entries_told_is_listed() -> None:
    assert told(labels=set()) == ""
    assert "GRAMMAR_VERSION" not in told(labels={"1", "2"})


def test_binding_words_stay_where_there_is_no_room_for_names() -> None:
    assert "Never push to main." in told(room=60)
    assert "GRAMMAR_VERSION [" not in told(room=60)
    assert counter_for().text(told(room=60)) <= 60
