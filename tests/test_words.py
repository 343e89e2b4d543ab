"""What a sentence does, in four languages: plain cases that may not be missed, plain ones that must not be taken."""

import pytest

from compactor import words

RULES = {
    "English": [
        "Never push to main.",
        "You must not touch the database.",
        "Don't change the public API.",
        "Always run the linter before you commit.",
        "Only edit files under src/.",
        "Ask me before you install anything.",
        "Please don't rename any files.",
        "Keep the old endpoint working.",
        "No new dependencies.",
        "Use tabs, not spaces.",
        "Make sure every test has a name.",
        "Under no circumstances delete the backups.",
        "Do not deploy without my approval.",
        "Stick to the standard library.",
        "You are not allowed to run migrations.",
        "Avoid global state.",
        "Stay away from the billing code.",
        "Leave the config as it is.",
        "Hands off the production bucket.",
        "I don't want any breaking changes.",
        "We can't use GPL code here.",
        "The reports must be in Markdown.",
        "Everything has to work on Windows too.",
        "Wait for my OK before the next step.",
        "Never mind the style, but don't break the tests.",
    ],
    "German": [
        "Niemals auf main pushen.",
        "Du darfst die Datenbank nicht anfassen.",
        "Ändere nicht die öffentliche API.",
        "Führe immer den Linter aus, bevor du committest.",
        "Nur Dateien unter src/ ändern.",
        "Frag mich, bevor du etwas installierst.",
        "Bitte keine Dateien umbenennen.",
        "Keine neuen Abhängigkeiten.",
        "Du musst jeden Test benennen.",
        "Auf keinen Fall die Backups löschen.",
        "Die Berichte müssen in Markdown sein.",
        "Ohne meine Zustimmung wird nichts ausgerollt.",
        "Lass die Konfiguration, wie sie ist.",
        "Verwende Tabs statt Leerzeichen.",
        "Globale Variablen sind verboten.",
        "Die Tests sollen höchstens eine Minute dauern.",
        "Finger weg von der Produktionsdatenbank.",
        "Vermeide globalen Zustand.",
        "Ich will keine Änderungen an der API.",
        "Die Tabelle bleibt, wie sie ist.",
        "Nichts löschen!",
        "Finger weg vom Cache.",
    ],
    "Spanish": [
        "Nunca subas nada a main.",
        "No debes tocar la base de datos.",
        "No cambies la API pública.",
        "Siempre ejecuta el linter antes de hacer commit.",
        "Solo edita archivos en src/.",
        "Pregúntame antes de instalar algo.",
        "Por favor, no renombres archivos.",
        "Sin dependencias nuevas.",
        "Tienes que poner nombre a cada prueba.",
        "Bajo ningún concepto borres las copias de seguridad.",
        "Los informes deben estar en Markdown.",
        "No despliegues sin mi aprobación.",
        "Deja la configuración como está.",
        "Usa tabuladores en vez de espacios.",
        "Está prohibido usar variables globales.",
        "Evita el estado global.",
        "Hay que mantener la compatibilidad.",
        "Asegúrate de que todo funcione en Windows.",
        "No quiero cambios en la API.",
        "No hay que tocar la tabla.",
        "Mantén la interfaz antigua.",
        "Ni se te ocurra borrar nada.",
    ],
    "Chinese": [
        "不要推送到 main 分支。",
        "你不能碰数据库。",
        "别改公共接口。",
        "提交之前必须先跑测试。",
        "只改 src/ 下面的文件。",
        "安装任何东西之前先问我。",
        "请不要重命名文件。",
        "禁止增加新的依赖。",
        "每个测试都要有名字，务必遵守。",
        "绝对不能删除备份。",
        "报告必须用 Markdown 写。",
        "没有我的同意不要部署。",
        "请勿修改配置。",
        "尽量避免全局变量。",
        "不用管样式，先保证测试通过。",
        "一定要兼容 Windows。",
        "未经我允许，不得上线。",
        "保持旧接口不变。",
        "我不希望改动接口。",
        "不准删任何东西！",
        "除了文档，什么都别动。",
    ],
}

NO_RULES = {
    "English": [
        "Can you show me the config?",
        "Why does the test fail?",
        "The build is green.",
        "It crashes on startup.",
        "Thanks, that looks great.",
        "I see the error in the log.",
        "The parser returns a list of tokens.",
        "There is a file called notes.md.",
        "What would you suggest?",
        "Fix the login page.",
        "Add a test for the parser.",
        "This is the output of the run:",
    ],
    "German": [
        "Kannst du mir die Konfiguration zeigen?",
        "Warum schlägt der Test fehl?",
        "Der Build ist grün.",
        "Es stürzt beim Start ab.",
        "Danke, das sieht gut aus.",
        "Ich sehe den Fehler im Log.",
        "Schreib einen Test für den Parser.",
        "Was schlägst du vor?",
    ],
    "Spanish": [
        "¿Puedes mostrarme la configuración?",
        "¿Por qué falla la prueba?",
        "La compilación está en verde.",
        "Se cae al arrancar.",
        "Gracias, queda muy bien.",
        "Veo el error en el registro.",
        "Añade una prueba para el analizador.",
        "¿Qué propones?",
    ],
    "Chinese": [
        "你能给我看一下配置吗？",
        "测试为什么失败？",
        "构建是绿色的。",
        "程序启动时崩溃了。",
        "谢谢，看起来很好。",
        "我看到了日志里的错误。",
        "给解析器加一个测试。",
        "你有什么建议？",
    ],
}

PERMISSIONS = [  # text, whether a limit is said with it
    ("You may edit src/a.py only.", True),
    ("You can deploy to staging, but not to production.", True),
    ("Feel free to refactor the parser.", False),
    ("You have my permission to delete the old branch.", False),
    ("You're allowed to install up to two packages.", True),
    ("I approve the migration, once and only on staging.", True),
    ("Go ahead and push the branch.", False),
    ("Du darfst nur die Tests ändern.", True),
    ("Du kannst auf Staging ausrollen, aber nicht auf Produktion.", True),
    ("Sie dürfen den alten Branch löschen.", False),
    ("Puedes borrar la rama vieja.", False),
    ("Tienes permiso para desplegar, pero solo en staging.", True),
    ("Te autorizo a publicar la versión.", False),
    ("你可以删除旧分支。", False),
    ("你可以部署到测试环境，但不要碰生产环境。", True),
    ("允许你只修改测试文件。", True),
]
NO_PERMISSIONS = [
    "May I push?",
    "Can you push it?",
    "你可以推送吗？",
    "¿Puedes subirlo?",
    "Kannst du es ausrollen?",
    "Fix the bug.",
]

APPROVALS = [
    "yes", "Yes, do it.", "ok", "OK, go ahead", "lgtm", "sounds good!", "Go for it", "ship it", "sure, why not", "ja",
    "Ja, mach das.", "genau", "einverstanden", "passt", "sí", "vale", "de acuerdo, hazlo", "claro", "好",
    "好的，继续吧", "可以", "同意", "没问题",
]  # fmt: skip
NO_APPROVALS = [
    "yesterday it worked",
    "okapis are animals",
    "no",
    "The plan is fine",
    "nein",
    "jagen",
    "silencio",
    "不行",
    "why?",
]

CORRECTIONS = [
    "No, that's the wrong file.", "Wrong.", "stop", "wait, not that one", "Actually, use sqlite.", "that's not right",
    "undo that", "I meant the other parser", "I take that back, no edits at all.", "This is wrong",
    "Nein, die andere Datei.", "falsch", "Halt, nicht das.", "no es eso", "Espera, eso no.", "para",
    "不对，是另一个文件。", "错了", "等等，不是这个",
]  # fmt: skip
NO_CORRECTIONS = ["Now add a test.", "nothing to add", "Halten wir fest", "parametrize it", "The north wall", "好的"]

REQUESTS = [
    "Fix the login page.", "Could you add a test?", "please run it again", "ok, now write the docs",
    "Show me the log.", "Can you explain this?", "Kannst du das prüfen?", "Bitte füge einen Test hinzu.",
    "Schreib die Doku.", "Zeig mir das Log.", "Puedes revisar esto?", "Por favor añade una prueba.",
    "Escribe la documentación.", "¿Puedes explicarlo?", "请加一个测试。", "帮我看看日志", "把文件移走",
]  # fmt: skip
NO_REQUESTS = [
    "It works now.",
    "What a mess.",
    "The test failed.",
    "Das ist gut.",
    "Está bien.",
    "程序崩溃了。",
    "Address 12 is free.",
]

REVOCATIONS = [
    "I take that back, no edits at all.", "Never mind.", "Forget about the cache.", "You may no longer push.",
    "Scrap that, start over.", "Das nehme ich zurück.", "Du darfst nicht mehr pushen.", "Vergiss das.",
    "Ya no puedes subir nada.", "Olvida lo anterior.", "Retiro lo dicho.", "我收回刚才的话。", "以后不再允许推送。",
    "那条规则作废。",
]  # fmt: skip
NO_REVOCATIONS = [
    "Take it to the back.",
    "Never push.",
    "Das ist nicht gut.",
    "No lo sé.",
    "不要推送。",
    "Don't forget the tests.",
]

CRITERIA = [
    "Done when all tests pass.", "Keep going until every test is green.", "The build should be green.",
    "Fertig, wenn alles läuft.", "Mach weiter, bis alle Tests grün sind.", "Terminado cuando pasen las pruebas.",
    "Sigue hasta que funcione.", "完成标准：所有测试通过。", "直到所有测试都通过。",
]  # fmt: skip
NO_CRITERIA = ["The test is red.", "When will it be done?", "Der Test läuft.", "测试失败了。"]

DENIALS = ["You can't push.", "You may not touch the database.", "You are not allowed to deploy.", "No, you mustn't."]
NO_DENIALS = ["You can push.", "I can't find it.", "Permission denied: /etc/app.conf", "Can't you push?", "Never mind."]

OUTWARD = [
    "Commit and push it.", "Deploy to staging.", "delete the old branch", "Open a pull request.", "Send the mail.",
    "Bitte den Branch löschen.", "Despliega la rama.", "borra los datos", "部署到测试环境。", "提交并推送。",
]  # fmt: skip
NOT_OUTWARD = [
    "Read the file.",
    "The deployment failed.",
    "It was committed yesterday.",
    "Zeig mir das Log.",
    "看看日志。",
]


def table(cases: dict[str, list[str]]) -> list[str]:
    return [sentence for sentences in cases.values() for sentence in sentences]


def test_there_are_enough_sentences_of_each_language() -> None:
    assert all(len(found) >= 12 for found in RULES.values())
    assert all(len(found) >= 6 for found in NO_RULES.values())


@pytest.mark.parametrize("text", table(RULES))
def test_a_rule_is_taken_as_one(text: str) -> None:
    assert words.is_rule(text)


@pytest.mark.parametrize("text", table(NO_RULES))
def test_a_question_statement_or_plain_request_is_no_rule(text: str) -> None:
    assert not words.is_rule(text)


@pytest.mark.parametrize(("text", "limited"), PERMISSIONS)
def test_a_permission_is_taken_with_its_limit(text: str, limited: bool) -> None:
    assert words.is_permission(text)
    assert words.has_limit(text) is limited


@pytest.mark.parametrize(
    ("tells", "yes", "no"),
    [
        (words.is_permission, [text for text, _ in PERMISSIONS], NO_PERMISSIONS),
        (words.is_approval, APPROVALS, NO_APPROVALS),
        (words.is_correction, CORRECTIONS, NO_CORRECTIONS),
        (words.is_request, REQUESTS, NO_REQUESTS),
        (words.is_revocation, REVOCATIONS, NO_REVOCATIONS),
        (words.is_criterion, CRITERIA, NO_CRITERIA),
        (words.is_denial, DENIALS, NO_DENIALS),
        (words.is_outward, OUTWARD, NOT_OUTWARD),
    ],
    ids=["permission", "approval", "correction", "request", "revocation", "criterion", "denial", "outward"],
)
def test_the_plain_cases_of_each_kind(tells: object, yes: list[str], no: list[str]) -> None:
    assert callable(tells)
    assert [text for text in yes if not tells(text)] == []
    assert [text for text in no if tells(text)] == []


@pytest.mark.parametrize(
    "text", ["Why?", "Is it `done?`", "Quick question: where is it", "¿Qué?", "为什么？", "可以推送吗", "(Really?)"]
)
def test_questions(text: str) -> None:
    assert words.is_question(text)
    assert not words.is_permission(text)


@pytest.mark.parametrize(
    "text", ["No?", "Should I or should you?", "Must it be sqlite?", "Darf ich nicht?", "不能推送吗？"]
)
def test_a_question_with_a_rules_words_is_no_rule(text: str) -> None:
    assert not words.is_rule(text)


@pytest.mark.parametrize("text", ["Could you please never push?", "Can you keep it under 100 lines?"])
def test_a_request_in_the_form_of_a_question_can_be_a_rule(text: str) -> None:
    assert words.is_rule(text)


# Sentences


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Fix it. Never push!", ["Fix it.", "Never push!"]),
        ("Use e.g. sqlite. No pg.", ["Use e.g. sqlite.", "No pg."]),
        ("Version 1.5 is old. Go.", ["Version 1.5 is old.", "Go."]),
        ("- one\n- two\n\nthree", ["- one", "- two", "three"]),
        ("1. First step\n2. Second", ["1. First step", "2. Second"]),
        ("不要推送。先问我！好吗？", ["不要推送。", "先问我！", "好吗？"]),
        ('He said "stop." Then left.', ['He said "stop."', "Then left."]),
        ("Das gilt z.B. für main. Nie pushen.", ["Das gilt z.B. für main.", "Nie pushen."]),
        ("  \n ", []),
    ],
)
def test_sentences_are_cut_where_they_end(text: str, parts: list[str]) -> None:
    assert list(words.sentences(text)) == parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use sqlite because pg needs a server.", "because pg needs a server"),
        ("Nimm sqlite, weil pg einen Server braucht.", "weil pg einen Server braucht"),
        ("Usa sqlite porque pg necesita un servidor.", "porque pg necesita un servidor"),
        ("用 sqlite，因为 pg 需要服务器。", "因为 pg 需要服务器"),
        ("Use sqlite.", ""),
    ],
)
def test_a_reason_is_the_sentences_own_words(text: str, expected: str) -> None:
    assert words.reason(text) == expected


@pytest.mark.parametrize(("text", "limit"), [("one two three four", 9), ("x" * 50, 20), ("a, b", 3), ("short", 5)])
def test_clipping_keeps_the_beginning_and_marks_the_cut(text: str, limit: int) -> None:
    clipped = words.clip(text, limit)
    assert len(clipped) <= limit + 2
    assert clipped == text if len(text) <= limit else clipped.endswith(" …") and text.startswith(clipped[:-2])


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("see /srv/green/beds_7f3a/plan.csv", 20, "see /srv/green/ …"), ("beds_7f3a.csv:12345", 12, "beds_7f3a. …"),
        ("/srv/green/beds_7f3a", 13, "/srv/green/ …"), ("abcdefghij", 4, "abcd …"),
    ],
)  # fmt: skip
def test_a_name_is_left_out_rather_than_cut(text: str, limit: int, expected: str) -> None:
    assert words.clip(text, limit) == expected


AGENT = {
    words.decides: ([
        "I decided to use sqlite.", "Going with the second approach.", "I'll use a lock instead of a queue.",
        "Ich habe mich für sqlite entschieden.", "Recomiendo usar sqlite.", "我决定采用 sqlite。",
    ],
                    ["Should I use sqlite instead?", "The file has 30 lines.", "Das Log ist leer.", "日志是空的。"]),
    words.rejects: ([
        "That didn't work.", "I tried redis, it is too slow.", "I reverted the change.", "Das funktioniert nicht.",
        "Redis quedó descartado.", "这个方案行不通。",
    ], ["It works.", "Did it not work?", "Alles gut.", "成功了。"]),
    words.finds: ([
        "The root cause is a missing lock.", "I found the bug in orders.py.", "Die Ursache ist der Cache.",
        "La causa es la caché.", "原因是缓存没有更新。",
    ], ["Is it because of the cache?", "Looking at orders.py.", "看看日志。"]),
    words.warns: ([
        "This is risky.", "There may be a race condition.", "Vorsicht: die Daten gehen verloren.",
        "Cuidado con los datos.", "注意：数据会丢失。",
    ], ["All is well.", "Is it risky?", "Alles gut.", "成功了。"]),
    words.looks_ahead: ([
        "Let me check the log.", "Now I'll run the tests.", "Next, the docs.", "Als nächstes die Tests.",
        "Ahora ejecuto las pruebas.", "接下来运行测试。",
    ], ["I ran the tests.", "The log is empty.", "测试通过了。"]),
}  # fmt: skip


@pytest.mark.parametrize("tells", AGENT, ids=lambda tells: tells.__name__)
def test_what_the_agents_sentences_tell(tells: object) -> None:
    assert callable(tells)
    yes, no = AGENT[tells]
    assert [text for text in yes if not tells(text)] == []
    assert [text for text in no if tells(text)] == []
