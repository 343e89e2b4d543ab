"""What a sentence does: rule, permission, approval, choice, request, question, correction, criterion, finding.

Told from words and position alone, in English, German, Spanish and Chinese. A sentence may do several things. The
lists lean towards finding too much: what is found is quoted verbatim, what is missed is lost.
"""

import re
from collections.abc import Iterator

_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？；])|\n+")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|z\.B|d\.h|bzw|p\.ej|\w)|^\s*\d+)\.$", re.IGNORECASE)


def sentences(text: str) -> Iterator[str]:
    """The sentences and lines of a text, verbatim but for the white space around them."""
    start = 0
    for match in _END.finditer(text):
        if "\n" not in match[0] and _ABBREVIATION.search(text[start : match.start()]):
            continue
        piece = text[start : match.start() + len(match[0].rstrip())]
        if piece.strip():
            yield piece.strip()
        start = match.end()
    if text[start:].strip():
        yield text[start:].strip()


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'])(?:{'|'.join(alternatives)})(?!\w)", re.IGNORECASE)


def _signs(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives))


_MEDIUM = _words("never", "always", "nie", "niemals", "immer", "nunca", "jamás", "siempre", "require[sd]?", "remember",
                 "have to", "has to", "needs? to", "at (?:most|least)", "muss", "müssen", "hay que")  # fmt: skip
_STRONG = _words(
    "must", "must ?n[o']t", "mustn't", "make sure", "ensure", "ask (?:me|us)?(?: first| before)",
    r"ask (?:me |us )?(?:first|before\b.*)", "check with me", "let'?s not", "do not", "please don'?t", "shouldn'?t",
    "should not", "should only", "there should be", "not allowed", "forbidden", "please not", "under no circumstances", "requirement",
    "no matter what", "wait for (?:my|me)", "nothing else",
    "(?:i|we) (?:don'?t|do not|never) want", "hands off", "off[- ]limits", "read[- ]only", "don'?t (?:ever|forget)", "keep in mind", "must never", "must always",
    # German
    "musst", "darfst? nicht", "dürfen nicht", "auf keinen fall",
    "unbedingt", "frag(?:e|t)? (?:mich |uns )?(?:erst|vorher|zuerst)", "erst fragen", "stelle sicher", "achte darauf",
    "verboten", "ich (?:will|möchte|mag) (?:nicht|kein\\w*)", "bitte (?:nicht|kein\\w*)", "soll(?:st|te|ten|en)? nicht", "finger weg", "mindestens", "höchstens", "keinesfalls",
    # Spanish
    "debe[sn]?", "debemos", "tien(?:e|es|en) que", "asegúrate",
    "pregunta(?:me|nos)? (?:antes|primero)", "prohibido", "obligatorio", "bajo ningún concepto", "al menos",
    "como máximo", "no debe[sn]?", "no hagas", "no toques", "no uses", "no borres", "no cambies",
    "no quiero", "ni se te ocurra",
)  # fmt: skip
_STRONG_SIGNS = _signs(
    "不要", "不许", "不得", "不能", "不可", "不准", "切勿", "请勿", "禁止", "必须", "务必", "一定要", "永远", "总是", "始终",
    "不希望", "不想", "记住", "每次.*都要", "只能", "只准", "只允许", "仅限", "先问", "先征求", "別", "别(?!的|人|处)", "至少", "最多", "绝对", "千万",
)  # fmt: skip
_WEAK = _words(
    "only", "until", "unless", "except(?: for)?", "without", "instead(?: of)?", "rather than", "prefer(?:ably)?",
    "avoid", "keep", "stop", "stay", "stick to", "leave", "don'?t", "dont", "no", "not", "should", "follow(?![- ]?up)", "respect",
    "before", "can'?t", "cannot", "won'?t", "skip", "ignore",
    "nichts?", "nur", "kein\\w*", "bleib(?:t|en),? wie", "bis", "außer", "ohne", "statt(?:dessen)?", "anstatt", "lieber", "bevorzuge\\w*",
    "vermeide\\w*", "soll(?:st|te|ten|en)?", "bevor", "bitte", "darf(?:st)?", "dürfen", "lass\\w*",
    "solo", "sólo", "solamente", "únicamente", "hasta", "excepto", "salvo", "sin", "en vez de", "en lugar de",
    "prefiero", "prefiere", "evita\\w*", "no", "antes", "por favor", "deja", "mant(?:én|ener|enga\\w*)",
)  # fmt: skip
_WEAK_SIGNS = _signs(
    "只", "除非", "直到", "除了", "之前", "优先", "尽量", "避免", "不用", "不必", "而不是", "改用", "先", "保持"
)
_STATEMENT = re.compile(
    r"^\W*(?:(?:ok|oh|ah|hm+|well|so|and|but|also|yeah|yes|actually|und|aber|y|pero)[,!. ]+)*(?:i|it|he|she|they|there|this|that|these|those"
    r"|ich|es|er|sie|das|dies\w*|yo|eso|esto|ello)(?:'\w+)?\s",
    re.IGNORECASE,
)
_DESCRIPTION = re.compile(
    r"^(?:the|an?|when|while|since|because|lines?|there|my|our|some|each|every|all|both|in|if|after|currently|right now)\s"
    r"|^[`\"']?(?-i:[\w.]*[a-z][A-Z_.]\w*)[`\"']?(?:\(\))?\s+\w+s\b",
    re.IGNORECASE,
)
_PERMISSION = _words(
    "you (?:may|can(?!'?t|not)|are allowed to|have my)", "feel free", "go ahead", "i (?:allow|approve|authori[sz]e|permit)",
    "you'?re (?:free|allowed|authori[sz]ed)", "permission", "approved", "allowed to", "authori[sz]ed",
    "du (?:darfst|kannst)", "sie (?:dürfen|können)", "erlaub\\w+", "genehmig\\w+", "freigegeben", "darfst",
    "puedes", "usted puede", "autorizo", "autorizado", "permito", "tienes permiso", "(?<!en )adelante",
)  # fmt: skip
_PERMISSION_SIGNS = _signs(
    "[你您][^，。；]{0,16}可以(?!吗)", r"^\s*(?:那|行|好的?|嗯|也|都|就|现在)*可以(?!吗|的?$)", "允许你", "授权", "批准"
)
_OUTWARD = re.compile(
    r"(?:^|[,;.!:]\s+|\b(?:please|pls|and|then|to|you|(?:can|could|should|shall|may) we|also|just|let'?s|should|can|could|now|yes|ok|okay|yeah|first|bitte)\s+)"
    r"(?:commit|push|merge|rebase|deploy|release|publish|delete|drop|send|e-?mail|pay|charge|refund|book|cancel|install"
    r"|upgrade|ship|roll ?back|migrate|submit|force[- ]push|run it|close it|log an? \w+"
    r"|(?:create|open|file|raise) (?:an? |the )?(?:draft )?(?:pr|pull request|issue|ticket))\b(?![-\w])"
    r"|\b(?:open|create|merge|raise) (?:a |the )?(?:draft )?(?:pr|pull request)\b|\binto (?:\w+ )?commits\b"
    r"|\b(?:löschen?|veröffentlichen|ausrollen|einspielen|zusammenführen|despliega|publica|borra|elimina|sube|envía)\b",
    re.IGNORECASE,
)
_OUTWARD_SIGNS = _signs(
    r"^(?:(?:那|好的?|行|可以|现在|请|麻烦|帮我|你|先|再|然后|接着|就|都|直接|把[^，。]{1,24}?|将[^，。]{1,24}?)[ ，,]*)*(?:提交|推送|合并|部署|发布|删除|上线|发送)"
)
_DEFERRED = re.compile(
    r"\b(?:to-?do|later|still (?:have|has|need|to)|eventually|some ?day|at some point|one day|sooner or later|remember to|not to forget|don'?t forget|someone|somebody|"
    r"once|as soon as|whenever|when|after(?:wards)?|für später|später|irgendwann|sobald|sowie|vormerken|nicht vergessen|pendiente|más tarde|algún día|cuando|en cuanto|todavía|no olvid\w+)\b"
    r"|待办|以后|之后|等.{1,20}(?:后|好|完)|回头|早晚|迟早|还得|别忘|记得",
    re.IGNORECASE,
)
"""What is to be done some other time isn't permitted now."""
_APPROVAL = re.compile(
    r"^(?:yes|yep|yeah|yup|sure|ok(?:ay)?|k|go|go ahead|go for it|do it|do that|run it|please do|sounds good|lgtm"
    r"|looks good|perfect|great|cool|agreed|approved|correct|exactly|right(?! now)|fine|proceed|continue|ship it|that works"
    r"|both|all(?: of them)?|ja|jawohl|genau|gerne|passt|mach (?:das|weiter|es)|weiter|einverstanden|los"
    r"|(?:i think )?that'?s (?:the right|it\b|fine|good|perfect)|that was the idea|no,? (?:then )?(?:it|that)'?s (?:good|fine|ok)"
    r"|s[ií]|vale|claro|de acuerdo|perfecto|hazlo|adelante|好的?|可以|行|是的?|对|同意|继续|没问题|嗯)(?![\w'])",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"^(?:no|nope|nah|wrong|stop|wait|actually|hold on|not (?:quite|that|correct|right)|that'?s (?:not|wrong)|undo"
    r"|that is (?:not|wrong)|revert|sorry|i (?:meant|said|did not|didn'?t|take)|nein|falsch|halt|doch|moment"
    r"|espera|para|eso no|no es|不对|不是|错了|等等|停)(?![\w])|\bis (?:not correct|wrong)\b|\btake that back\b"
    r"|\bisn'?t (?:really|actually|right|correct)\b|\bis still (?:fail|brok|wrong|show)\w*|\bare (?:still )?(?:off|wrong)\b"
    r"|\bdoes(?:n'?t| not) mean\b",
    re.IGNORECASE,
)
_CHOICE = _words(
    "let'?s (?!think|look|see|check|start|go\\b|continue|try|talk|do\\b|implement|fix)", "i'?d (?:go|like|rather|prefer|say)", "i (?:like|want|prefer|choose|think we|decided|would)",
    "we(?:'ll| will| should| want| decided)", "go(?:ing)? with", "option \\d", "use", "put it", "swap", "rename",
    "make it", "switch to", "choose", "pick", "decided?", "the (?:first|second|third|last) (?:one|option)",
    "nehmen wir", "lass uns", "wir (?:nehmen|machen|wollen|sollten)", "ich (?:möchte|will|hätte)", "verwende\\w*",
    "nutze\\w*", "vamos (?:a|con)", "quiero", "usa(?:mos|r)?", "elijo", "mejor", "me gusta",
)  # fmt: skip
_CHOICE_SIGNS = _signs(
    "(?:就|改|先|还是|都|要|想|会|统一|直接)用(?!户)",
    "(?<![有没使起作不])用(?=[A-Za-z0-9` ])",
    "我们(?=就|用|选|走|改|采|要|先|还是)",
    "选(?!项)",
    "采用",
    "改成",
    "我想",
    "我要",
    "希望",
    "决定",
)
_REQUEST = re.compile(
    r"\bplease\b|^/[a-z][\w:-]*\b"
    r"|^(?!what|why|how|when|where|which|who|is|are|do|does|did|if).*\b(?:can|could) (?:you|we|u)\b"
    r"|^(?:(?:ok|okay|cool|yes|yep|yeah|no|now|then|and|also|so|great|question|please|pls|ah|right|first|next|let'?s first)"
    r"[,!:. -]+)*(?:(?:can|could|would|will) (?:you|we|u)|add|fix|implement|write|create|update|change|run|check"
    r"|look|show|tell|explain|review|test|build|refactor|move|remove|delete|rename|make|find|try|open|commit|push|set"
    r"|debug|investigate|compare|document|log|start|continue|finish|list|give|help|do(?! (?:we|you|i|they|the|these|those|any)\b)|generate|convert|clean|merge"
    r"|revert|use|put|swap|keep|let'?s|lets|we (?:just |only )?need to|we should|there should be|group|split|port|upgrade|replace)\b"
    r"|^(?:kannst|könntest|können|bitte|füge|schreib\w*|mach\w*|prüf\w*|zeig\w*|erstell\w*|änder\w*|bau\w*)\b"
    r"|^¿?(?:puedes|podrías|por favor|añade|agrega|escribe|haz|revisa|muestra|crea|cambia|arregla)\b|请|帮我|给我|把",
    re.IGNORECASE,
)
_CRITERION = _words(
    "done when", "until (?:all|the|every|it|they)", "acceptance", "should (?:pass|work|be green)", "tests? (?:must )?pass",
    "success (?:means|is)", "definition of done", "fertig,? wenn", "bis alle", "terminado cuando", "hasta que",
    "finished when", "complete when",
)  # fmt: skip
_CRITERION_SIGNS = _signs("直到.*(?:通过|完成)", "完成标准", "验收")
_LIMIT = _words(
    "only", "not", "never", "don'?t", "until", "unless", "except", "without", "but", "ask", "first", "before", "just",
    "nur", "nicht", "nie", "bis", "außer", "ohne", "aber", "kein\\w*", "solo", "sólo", "no", "hasta", "salvo", "sin",
    "pero", "erst", "vorher", "zuerst", "bevor", "höchstens", "maximal", "mindestens", "längstens", "primero", "antes", "máximo", "como mucho", "staging", "at most", "up to", "max(?:imum)?", r"\d+ ?%",
)  # fmt: skip
_LIMIT_SIGNS = _signs(
    "顶多",
    "最多",
    "为止",
    "以内",
    "以下",
    "一律",
    "统一",
    "只",
    "仅",
    "不",
    "别",
    "除(?:非|了|外)",
    "直到",
    "之前",
    "先",
    "但",
)


def _either(text: str, words: re.Pattern[str], signs: re.Pattern[str] | None = None) -> bool:
    return bool(words.search(text) or (signs and signs.search(text)))


_ASKS = re.compile(
    r"^(?:(?:and|but|so|ok(?:ay)?|cool|hm+|oh|ah|or)[ ,-]+)*(?:what|why|how|when|where|which|who|is|are|was|were|do|does|did"
    r"|isn'?t|aren'?t|would|warum|wieso|wie|was|welche\w*|por qué|qué|cómo|cuál|为什么|怎么)\b[^.!。！]*[?？]",
    re.IGNORECASE,
)


_TAG = re.compile(
    r",\s*¿?(?:ok(?:ay)?|got it|understood|ja|klar|verstanden|alles klar|vale|de acuerdo|entendido|好吗|行吗|可以吗|明白吗)\s*[?？]\s*$|，(?:好吗|行吗|可以吗|明白吗)[?？]?\s*$",
    re.IGNORECASE,
)
"""What makes a statement sound kinder, and no question of it."""


def is_question(text: str) -> bool:
    """Whether it asks, by its mark or by how it begins."""
    text = _TAG.sub("", text)
    if _ASKS.match(text):
        return True
    if re.match(r"(?:quick |learning |another )?(?:question|q)\b.{0,12}?[:,]", text, re.IGNORECASE):
        return True
    return text.rstrip(" \"')*_`").endswith(("?", "？")) or text.endswith("吗")


def is_request(text: str) -> bool:
    """Whether it asks for something to be done."""
    return bool(_REQUEST.search(text))


_ALTERNATIVE = re.compile(
    r"\bor (?:do|is|are|should|can|could|does|would|will) (?:we|it|you|i|that|they)\b|\bdo we need\b", re.I
)


_LIMITS_REQUEST = _words(
    "only", "don'?t", "never", "without", "keep", "nur", "ohne", "nicht", "solo", "sólo", "sin", "nunca"
)
"""What makes a rule of a question that asks for something."""
_PAST = _words("did", "was", "were", "had", "should(?:n't)? have", "has been", "have been", "happened", "used to")


def is_pasted(text: str) -> bool:
    """Whether a line is output, a log or a listing that the human pasted, not the human speaking."""
    return bool(_PASTED.match(text))


_PASTED = re.compile(
    r"\s*(?:[>|│┃╭╰├└─*•]\s*[│╭╰├└─v-]|>\s|\* commit |commit [0-9a-f]{7,}|create mode |={3,}|-{3,}|\$ |\w+: (?:cannot|fatal|error|unknown)"
    r"|(?:error|fatal|warning|panic|traceback)\b.*:|No \w+ in \w+$|[{}\[\]]|\"\w+\":|\w+@[\w-]+[:~]|\S+\.\w+:\d+|\d{4}-\d\d-\d\d[T ]\d\d:)",
    re.IGNORECASE,
)


def is_rule(text: str) -> bool:
    """Whether the speaker lays down what must, may not or should be done."""
    return any(_rules(sentence) for sentence in sentences(text))


_QUOTE = re.compile(r'"[^"\n]*"|“[^“”\n]*”|„[^“”\n]*[“”]|«[^«»\n]*»|「[^「」\n]*」')
_QUOTED_WORDS = 3
"""From so many words on what stands in quotation marks is somebody's sentence, not a name."""
_SUPPOSED = re.compile(
    r"^\W*(?:(?:ok|so|and|but|now|also|hm+)[,!. ]+)*(?:suppose|supposing|imagine|assume|assuming|hypothetically|say (?:i|we|you)|what if|if (?:i|you) were"
    r"|angenommen|stell dir vor|mal angenommen|gesetzt den fall|nimm an|wenn du (?:der|die|hier) .*wärst"
    r"|imagina|imagínate|supón|supongamos|suponiendo|pongamos que)\b|^\W*(?:假设|假如|假使|设想|要是你是)",
    re.IGNORECASE,
)
_PAST_TIME = re.compile(
    r"^\W*(?:(?:ok|so|and|but|well|also|y|und)[,!. ]+)*(?:back (?:in|when|then)|last (?:year|month|spring|summer|autumn|fall|winter|quarter|time)|years ago"
    r"|once upon|in the old days|früher|damals|letzte[smnr]? (?:jahr|monat|mal|frühjahr|sommer|herbst|winter)|im (?:letzten|vergangenen) \w+|vor (?:\w+ )?jahren"
    r"|el (?:año|mes|verano|invierno|otoño) pasado|la (?:primavera) pasada|en aquel|antaño|hace (?:\w+ )?años)\b"
    r"|^\W*(?:im (?:frühjahr|frühling|sommer|herbst|winter)|in (?:spring|summer|autumn|winter)|en (?:primavera|verano|otoño|invierno))\b"
    r"|\b(?:mein\w*|my|mi|our|unser\w*|nuestr[oa]) (?:old|former|ex|previous|früher\w*|alte[rn]?|ehemalig\w*|antigu[oa]|anterior) (?:boss|job|team|company|manager|chef\w*|firma|jef[ea]|empresa|trabajo)\b"
    r"|以前的?(?:老板|公司|领导|团队)|^\W*(?:[春夏秋冬]天那)|^\W*(?:去年|以前|当年|当时|前年|从前|早些年|之前我们)",
    re.IGNORECASE,
)
_JOKING = re.compile(
    r"\b(?:(?:just|only) (?:kidding|joking)|kidding|jk|ha(?:ha)+|(?:war (?:nur|bloß) )?(?:ein )?(?:scherz|spaß)|es (?:una )?broma|ja(?:ja)+)\b|哈哈|开玩笑|说笑",
    re.IGNORECASE,
)


_REPORTED = re.compile(
    r"^\W*(?:the|an?|der|die|das|el|la|los|las) [\w-]+ (?:says?|said|claims?|complains?|sagt|meint|meldet|behauptet|dice|dicen|reza)\b",
    re.IGNORECASE,
)
"""What somebody or something says, of which the user asks in the same breath."""


def own(text: str) -> str:
    """What of a text the speaker lays down: without the sentences that it quotes from others, and without its tales."""
    text = _QUOTE.sub(lambda match: "“”" if _says_much(match[0]) else match[0], text)
    asks = any(is_question(sentence) for sentence in sentences(text))
    told = [s for s in sentences(text) if not (_is_tale(s) or (asks and _REPORTED.search(s)))]
    return text if len(told) == sum(1 for _ in sentences(text)) else " ".join(told)


def _says_much(quote: str) -> bool:
    return len(re.findall(r"[^\W\d_]+", quote)) >= _QUOTED_WORDS or len(re.findall(r"[\u3400-\u9fff]", quote)) > 4


def _is_tale(text: str) -> bool:
    """Whether it supposes something, tells of the past, or jokes: nothing of it is laid down or permitted now."""
    return bool(_SUPPOSED.search(text) or _PAST_TIME.search(text) or _JOKING.search(text))


def _rules(text: str) -> bool:
    if is_question(text) and (not is_request(text) or _ALTERNATIVE.search(text)):
        return False
    if _either(text, _STRONG, _STRONG_SIGNS):
        return True
    if is_question(text):
        return bool(_LIMITS_REQUEST.search(text))
    if _STATEMENT.match(text):
        return False
    if _MEDIUM.search(text):
        return True
    tells = _DESCRIPTION.match(text) or _PAST.search(text) or text.endswith((":", "："))
    return _either(text, _WEAK, _WEAK_SIGNS) and not tells


def is_strict(text: str) -> bool:
    """Whether a rule is laid down in words that nobody uses for less: must, never, always, ask before."""
    return _either(text, _STRONG, _STRONG_SIGNS) or bool(_MEDIUM.search(text))


_CLAUSE = re.compile(r"[,;:.!?—。，；！？\n]+|\b(?:but|though|however|aber|jedoch|pero)\b|但是?")
_NEGATION = re.compile(
    r"n't\b|\b(?:not|never|nobody|no one|nothing|none|no|denied|revoke[sd]?|withdr[ae]w\w*|take back|nicht|nie(?:mals|mand)?"
    r"|kein\w*|nunca|nadie|ning[uú]n[ao]?s?|jamás|retiro)\b|[不未没别勿]",
    re.IGNORECASE,
)
_CONDITION = _words(
    "before", "until", "unless", "ask", "if", "when(?:ever)?", "after", "without", "once", "how", "why",
    "bevor", "bis", "wenn", "frag\\w*", "ohne", "antes", "hasta", "pregunta\\w*", "cuando", "sin",
)  # fmt: skip


_GATED = re.compile(
    r"\b(?:must|needs?|has to|have to|requires?|required|should|until|before|unless|without|once|only (?:after|with|when)|first|beforehand"
    r"|muss|müssen|brauch\w*|benötig\w*|bevor|bis|ohne|erst|vorher|nur (?:nach|mit)|debe\w*|tienen? que|requiere\w*|necesita\w*|antes|hasta|sin|previ[oa])\b"
    r".*\b(?:approv\w*|permission|authori[sz]\w*|allowed|erlaub\w*|genehmig\w*|freig\w+|freigabe|autoriz\w*|permiso|aprob\w*)"
    r"|\b(?:approv\w*|permission|authori[sz]\w*|erlaub\w*|genehmig\w*|freigabe|freigegeben|autoriz\w*|permiso|aprob\w*)\b.*\b(?:first|beforehand|vorher|zuerst|previ[oa]\w*|antes)\b"
    r"|(?<!you )\b(?:is|are|was|were) approved\b"
    r"|(?:先|须|需要?|必须|得|才|经过?|未|没有?).{0,8}(?:批准|授权|允许)|(?:批准|授权|允许).{0,4}(?:之?前|再|才|后)",
    re.IGNORECASE,
)
"""A clause that makes something wait for a permission gives none."""


def _granted(text: str) -> bool | None:
    """Whether some clause permits something; False where the only ones that speak of it deny it, None where none does."""
    told = None
    for sentence in sentences(text):
        if is_question(sentence):
            continue
        for clause in _CLAUSE.split(sentence):
            if _either(clause, _PERMISSION, _PERMISSION_SIGNS):
                if not (_NEGATION.search(clause) or _GATED.search(clause)):
                    return True
                told = False if _NEGATION.search(clause) else told
    return told


def is_permission(text: str) -> bool:
    """Whether it permits something: a clause speaks of permission and nothing in it says no."""
    return _granted(text) is True and not is_revocation(text)


_TOLD_PERMISSION = _words(
    "approved", "authori[sz]ed", "allowed", "permitted", "permission", "granted", "green[- ]?lit", "agreed", "consented", "signed off",
    "erlaubt", "genehmigt", "freigegeben", "zugestimmt", "autorizado", "aprobado", "permitido", "permiso",
)  # fmt: skip


def tells_of_permission(text: str) -> bool:
    """Whether a sentence of a summary says that something is permitted, whoever speaks."""
    said = _either(text, _TOLD_PERMISSION, _signs("批准", "同意", "允许", "授权")) or _granted(text) is True
    return said and not (_NEGATION.search(text) or is_question(text))


def is_denial(text: str) -> bool:
    """Whether it says that something isn't permitted."""
    if re.search(r"\byou (?:can(?:no|')?t|cannot|may not|must ?n[o']t|are ?n[o']t|aren't)\b", text, re.IGNORECASE):
        return _granted(text) is not True
    return _granted(text) is False and not re.match(r"\W*permission denied", text, re.IGNORECASE)


def is_outward(text: str) -> bool:
    """Whether it asks for an act that others see or that is hard to take back: commit, push, deploy, delete, send."""
    for sentence in sentences(text):
        asks = is_request(sentence) or not (_STATEMENT.match(sentence) or is_question(sentence))
        asks = asks and not _DEFERRED.search(sentence)
        clauses = _CLAUSE.split(sentence) if asks else ()
        if any(_either(c.strip(), _OUTWARD, _OUTWARD_SIGNS) and not _holds_back(c) for c in clauses):
            return True
    return False


_ACTS = re.compile(
    r"\b(commit|push|merg|rebas|deploy|delet|drop|pr\b|migrat|publish|releas|send|install|lösch|veröffentlich|ausroll"
    r"|einspiel|despl(?:ie|e)g|public|borr|elimin|envi|instal)|提交|推送|合并|部署|发布|删除|上线|发送|安装"
)


def acts(text: str) -> set[str]:
    """The acts that a text names which others see or that are hard to take back, each by how its word begins."""
    return {match[0] for match in _ACTS.finditer(text.casefold())}


def _holds_back(clause: str) -> bool:
    return bool(_NEGATION.search(clause) or _CONDITION.search(clause) or re.search("前|先问|除非|直到|如果", clause))


def is_approval(text: str) -> bool:
    """Whether it begins as a yes does."""
    return bool(_APPROVAL.match(text))


def refuses(text: str) -> bool:
    """Whether what is said with a refused tool use says no to something."""
    return bool(re.search(r"\b(?:no|not|don'?t|never|nicht|kein\w*|nie|no|nunca)\b|不|别", text, re.IGNORECASE))


def is_correction(text: str) -> bool:
    """Whether it sets something right: a no, a wrong, an undo."""
    return bool(_CORRECTION.search(text))


def is_choice(text: str) -> bool:
    """Whether it picks or wants one way among others."""
    return _either(text, _CHOICE, _CHOICE_SIGNS)


def is_criterion(text: str) -> bool:
    """Whether it says when the work is finished."""
    return _either(text, _CRITERION, _CRITERION_SIGNS)


def has_limit(text: str) -> bool:
    """Whether a permission in it has a limit said with it."""
    return _either(text, _LIMIT, _LIMIT_SIGNS)


_REVOKED = _words(
    "rescind\\w*", "widerruf\\w*", "zur[üu]ckgezogen", "te retiro", "revoc[oa]\\w*", "anul[oa]\\w*",
    "take (?:that|it) back", "take back", "revoke[sd]?", "withdraw\\w*", "ignore (?:this|that) (?:part|one|request)", "abandon", "revert (?:those|that|this|it)",
    "go back to", "no longer", "no more(?! than)", "(?:not|n't|dont)\\b.{0,60}any ?(?:more|longer)(?! than)", "never ?mind", "forget (?:that|it|about)", "scrap (?:that|what|the)",
    "nehme (?:das|ich) .*zurück", "nicht mehr(?! als)", "vergiss", "ya no", "olvida", "retiro",
)  # fmt: skip


def is_revocation(text: str) -> bool:
    """Whether it takes something back that was said before."""
    return _either(
        text,
        _REVOKED,
        _signs("收回", "不再", "作废", "取消", "撤销", "撤回", "(?:不能|不可以|不许|不准|不得|不要|别|不用)再"),
    )


_ENDS = _words(
    "(?:any|no) ?(?:more|longer|further)(?! than)", "withdrawn", "tak(?:e|es|ing|en)\\b.{1,60}\\bback", "back to", "scrap(?:ped)?", "gone", "pulled", "cancel\\w*", "called off",
    "ended", "expired", "stop(?:ped)?", "from (?:now|here|today) on", "off the table", "hereby",
    "kein\\w* .{0,60}mehr(?! als)", "ni(?:x|chts) mehr", "gestrichen", "abgeblasen", "aufgehoben", "hinfällig", "zurück", "ab (?:jetzt|sofort|hier|heute)", "vorbei", "gekippt", "schluss",
    "retir\\w+", "cancel\\w+", "se acabó", "quitado", "deja(?:mos)? de", "a partir de (?:ahora|aquí|hoy)", "desde ahora", "volvemos", "vuelve a", "basta", "ya no", "ninguna? .{0,30}más", "no .{0,40}más(?! de)",
)  # fmt: skip
_ENDS_SIGNS = _signs(
    "停止", "停掉", "停用", "停下", "没了", "当我没说", "不用了", "从现在", "从今", "到此为止", "结束", "打住", "不要了"
)


def forbids(text: str) -> bool:
    """Whether it lays down what may not be done."""
    return is_rule(text) and bool(_NEGATION.search(text))


def ends_and_denies(text: str) -> bool:
    """Whether from now on something may not be: an end and a no in one."""
    return ends(text) and bool(_NEGATION.search(text))


def ends(text: str) -> bool:
    """Whether it may end what held so far, where it speaks of it: no more, from now on, gone."""
    return is_revocation(text) or (
        _either(text, _ENDS, _ENDS_SIGNS) and not re.match(r"\W*(?:if|when|wenn|falls|si|cuando)\b", text, re.I)
    )


_DECIDED = _words(
    "(?:i|we)(?:'ve| have)? (?:decided|chose|settled)", "(?:i'll|let me|we'll|let's|i will|we should|i'm going to) use",
    "(?:best|right|cleanest|simplest|better) (?:approach|fix|solution|option|way)", "the (?:fix|solution|approach) is",
    "going with", "decision",
    "(?:i|we|let'?s|let me|should|will|us(?:e|ing|ed))\\b.{0,60}(?:instead of|rather than)", "recommend\\w*", "i(?:'d| would) (?:suggest|go)",
    "entschieden", "stattdessen", "empfehle", "decid\\w+ ", "recomiendo",
)  # fmt: skip
_REJECTED = _words(
    "(?:did|does|do|will|would|could|can)(?:n't| not) (?:work|help|fix|apply|compile|build)", "won't work", "revert(?:ed|ing)?",
    "rejected", "ruled? out", "not an option", "dead end", "abandon(?:ed|ing)?", "tried", "too (?:complex|risky|slow)",
    "overkill", "not worth", "no longer (?:needed|used)", "undo(?:ne)?", "turned out", "rolled back", "gave up",
    "verworfen", "funktioniert nicht", "no funciona", "descart\\w+",
)  # fmt: skip
_FOUND = _words(
    "root cause", "the (?:bug|issue|problem|cause|reason|error) (?:is|was)", "because", "found", "confirmed", "turns out",
    "means that", "this (?:is why|explains|means)", "the key", "importantly", "note(?: that)?", "since", "caused by",
    "fixed", "works", "passes", "pass", "now", "weil", "ursache", "grund", "porque", "causa", "encontr\\w+",
)  # fmt: skip
_RISKY = _words(
    "risk(?:y|s)?", "careful", "caution", "danger\\w*", "could break", "might break", "breaking change", "race condition",
    "data loss", "vulnerab\\w+", "insecure", "flaky", "potential (?:issue|problem)",
    "risiko", "vorsicht", "gefahr", "riesgo", "cuidado", "peligro",
)  # fmt: skip
_SHORT = re.compile(
    r"\b(?:could(?:n't| not)|can(?:'t|not)|unable|not yet|didn't (?:find|manage|work)|don't know|not sure|no idea|still (?:fail|open|miss)"
    r"|konnte\w* (?:nicht|kein)|no pude|no puedo)|无法|没能|还没",
    re.IGNORECASE,
)


def falls_short(text: str) -> bool:
    """Whether an answer says that it doesn't answer, or not all of it."""
    return bool(_SHORT.search(text)) or is_question(text)


def asks_to_tell(text: str) -> bool:
    """Whether an answer in words is all that is asked for."""
    return is_question(text) or bool(
        re.search(
            r"\b(?:explain|show|tell|look|check|review|compare|investigate|find out|list|read|see|erklär|zeig|prüf|explica|muestra|revisa)",
            text,
            re.I,
        )
        or re.search("解释|看|检查|说明", text)
    )


_AHEAD = re.compile(
    r"^(?:(?:now|next|then|so|ok(?:ay)?|good|great|perfect)[,!.: -]+)*(?:let me|i'?ll|i will|i need to|i should|next|now"
    r"|let's|we (?:need|should)|remaining|todo|still)\b|^(?:als nächstes|jetzt|ahora|接下来|现在)",
    re.IGNORECASE,
)


def decides(text: str) -> bool:
    """Whether an agent's sentence reports a choice."""
    return bool(_DECIDED.search(text) or re.search("决定|采用|建议|改用", text)) and not is_question(text)


_PROPOSED = _words(
    "(?:i|we)(?:'d| would)? (?:suggest|propose|recommend)", "(?:my|a|one) (?:suggestion|proposal|recommendation|option)",
    "(?:we|you|i) (?:could|might)", "(?:should|shall|may) (?:i|we)", "(?:would|do) you (?:like|want|prefer)", "want me to", "alternatively",
    "recommended", "let me know (?:if|which)", "how about", "what about", "(?:ich|wir) (?:schlage|schlagen|empfehle\\w*)", "vorschlag",
    "soll(?:en)? (?:ich|wir)", "möchtest du", "(?:wir|du|man) könnten?(?:st)?", "propongo", "recomiendo", "sugiero", "podríamos",
    "¿?quieres que", "propuesta",
)  # fmt: skip


def proposes(text: str) -> bool:
    """Whether an agent's sentence offers a choice instead of making it."""
    return bool(_PROPOSED.search(text) or re.search("建议|要不要|是否要|可以考虑", text)) or is_question(text)


def rejects(text: str) -> bool:
    """Whether a sentence reports an option that failed or was given up."""
    return bool(_REJECTED.search(text) or re.search("放弃|不可行|行不通|回滚", text)) and not is_question(text)


def finds(text: str) -> bool:
    """Whether an agent's sentence reports a finding."""
    return bool(_FOUND.search(text) or re.search("因为|原因|发现|确认|说明", text)) and not is_question(text)


def warns(text: str) -> bool:
    """Whether an agent's sentence speaks of a risk."""
    return bool(_RISKY.search(text) or re.search("风险|小心|注意", text)) and not is_question(text)


def looks_ahead(text: str) -> bool:
    """Whether an agent's sentence says what it does next, not what is."""
    return bool(_AHEAD.match(text))


_REASON = re.compile(
    r"(?:\b(?:because|since|so that|as it|due to|in order to|weil|damit|da sonst|denn|porque|para que|ya que)\b|因为|以便)"
    r"\s*(.{4,160}?)(?:[.;!?。；]|$)",
    re.IGNORECASE | re.DOTALL,
)


def reason(text: str) -> str:
    """The reason that a sentence gives, verbatim, or an empty string."""
    match = _REASON.search(text)
    return match[0].strip(" .;!?。；，") if match else ""


def length(text: str) -> int:
    """About how long a text is in letters; a Chinese or Japanese sign says as much as three."""
    return len(text) + 2 * len(re.findall(r"[\u3040-\u30ff\u3400-\u9fff]", text))


def clip(text: str, limit: int) -> str:
    """The text up to about `limit` characters, cut between words and never inside a name, marked where cut."""
    if len(text) <= limit:
        return text
    cut = text[:limit]
    spaced = re.search(r"\s", cut[limit // 2 :])
    end = max(cut.rfind(" "), cut.rfind("\n")) if spaced else _between_names(text, limit)
    return cut[:end].rstrip(" ,;:-(") + " …"


def _between_names(text: str, limit: int) -> int:
    """The last place up to `limit` that isn't inside a run of letters and digits; `limit` where there is none."""
    end = limit
    while end and re.match(r"[A-Za-z0-9_]{2}", text[end - 1 : end + 1]):
        end -= 1
    return end or limit
