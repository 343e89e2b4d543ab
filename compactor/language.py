"""Which language a text is in, as far as its script and its commonest words tell."""

import re
from collections import Counter

SCRIPTS = {
    "Japanese": r"[\u3040-\u30ff]", "Korean": r"[\uac00-\ud7af\u1100-\u11ff]",
    "Chinese": r"[\u4e00-\u9fff\u3400-\u4dbf]",
    "Russian or another language in Cyrillic": r"[\u0400-\u04ff]", "Greek": r"[\u0370-\u03ff]",
    "Arabic": r"[\u0600-\u06ff]", "Hebrew": r"[\u0590-\u05ff]", "Hindi": r"[\u0900-\u097f]", "Thai": r"[\u0e00-\u0e7f]",
}  # fmt: skip
"""Letters of each; Japanese comes before Chinese, since it is written with both."""
WORDS = {
    "English": "the and is was are that this with for not from have has it be to of in on you we should what when",
    "German": "der die das und ist war sind nicht mit für von auf ein eine wir du sie dass wenn soll den dem zu im",
    "French": "le la les et est sont pas avec pour dans une un des du que qui sur nous vous il elle ne au ce",
    "Spanish": "el la los las y es son no con para en una un del que por se lo como pero más está este",
    "Portuguese": "o a os as e é são não com para em uma um do da que por se como mas mais está este no na",
    "Italian": "il la le gli e è sono non con per in una un del della che di si come ma più questo nel",
    "Dutch": "de het een en is zijn niet met voor van op dat die wij je als maar ook naar te in",
}
_SETS = {language: frozenset(words.split()) for language, words in WORDS.items()}
SHARE = 0.12
"""Of all letters so many must be of a script: names and code in Latin letters stand in every language."""
LEAST, LEAD = 6, 1.4
"""So many common words must be found, and so many times those of the next language."""


def of(text: str) -> str:
    """The language's English name; empty where too little tells."""
    letters = len(re.findall(r"[^\W\d_]", text))
    for language, letter in SCRIPTS.items():
        if letters >= LEAST and len(re.findall(letter, text)) > SHARE * letters:
            return language
    words = Counter(re.findall(r"(?<![\w/.`'-])[^\W\d_]+(?![\w/`])", text.casefold()))
    votes = sorted(((sum(words[w] for w in known), language) for language, known in _SETS.items()), reverse=True)
    (most, best), (second, _) = votes[0], votes[1]
    return best if most >= LEAST and most >= LEAD * second else ""
