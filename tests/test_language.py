"""Which language a text is in."""

import pytest

from compactor import language

SAMPLES = {
    "English": "The pump is not in the house, and we should move it to the garden when it rains.",
    "German": "Die Pumpe ist nicht im Haus, und wir sollen sie in den Garten bringen, wenn es regnet.",
    "French": "La pompe n'est pas dans la maison et nous devons la mettre dans le jardin pour les fleurs.",
    "Spanish": "La bomba no está en la casa y los jardines son para las flores, pero se lo dije por el agua.",
    "Portuguese": "A bomba não está na casa e os jardins são para as flores, mas o senhor não disse que é a água.",
    "Chinese": "水泵不在房子里，下雨时我们应该把 /srv/garden/pump.py 移到花园。",
    "Japanese": "ポンプは家の中にありません。雨が降ったら庭に移します。",
    "Korean": "펌프는 집 안에 없습니다. 비가 오면 정원으로 옮깁니다.",
    "Russian or another language in Cyrillic": "Насос не в доме, перенеси его в сад, когда пойдёт дождь.",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_language_is_known(name: str) -> None:
    assert language.of(SAMPLES[name]) == name


@pytest.mark.parametrize("text", ["", "ok", "def f(x): return x", "make gen-* make check", "1234 5678", "PUMP_ID=7"])
def test_too_little_tells_nothing(text: str) -> None:
    assert language.of(text) == ""


def test_names_in_other_letters_change_nothing() -> None:
    assert language.of("请修复 useSessionStream.ts 里的 websocket reconnect 问题，不要重构。") == "Chinese"
