"""Tell from a name whether a judge or a person gave a label, in the languages of the files.

One table for the names of columns, the keys of objects and the names of annotators.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import product

from judgesense.text import caseless

JUDGE, PERSON = "judge", "person"

_MODELS = (
    "llm llms ai ki ia gpt* chatgpt* claude* gemini* llama* qwen* mistral* mixtral* ministral* "
    "gemma* deepseek* grok* sonnet* haiku* opus* o1 o3 o4 kimi* glm* phi phi3 phi4 yi ernie* "
    "falcon* vicuna* granite* nemotron* hunyuan* palm bard davinci* selene prometheus geval "
    "auto autograde autograder autorater autojudge* autoeval autoscore automated automatic "
    "automatisch* automatique automático automática model models modelo* modello modèle* modele "
    "modell bot machine 大模型 模型 自動 自动 機械 모델 자동 модель* ии yapay zeka"
)
"""A model, also where other words name people: ``llm_annotator``."""
_JUDGES = (
    "judge judges juge juez jueza juiz juíza giudice giudizio richter grader scorer verifier "
    "evaluator eval evals classifier predicted prediction urteil modellurteil* hakem судья суддя "
    "裁判 判定 评审 評審 评判 심사 판정"
)
_PEOPLE = (
    "hum human* humain* people person persona expert* esperto esperti especialista* specialist sme "
    "smes reviewer* rater* voter* annotator* annotated annotation* annotatore annotateur* "
    "anotador* anotadora labeler* labeller* coder* worker* crowd* qa panel gold golden truth "
    "manual* manuell* manuel* mensch* menschlich* prüfer* pruefer* gutachter* moderator* revisor* "
    "arbit* revisore évaluateur* evaluateur* evaluador* avaliador* valutatore beoordelaar* mos "
    "annotatric* évaluatric* valutatric* revisora relecteur* relectrice* correcteur* bewerter* "
    "korrektor* maintainer* auditor* adjudicat* insan uzman* człowiek ekspert* "
    "человек* люди эксперт* асессор* разметчик* людина експерт* "
    "人手 人工 人間 人间 人类 真人 专家 專家 専門家 担当者 審査員 標注員 标注员 评审员 評審員 "
    "教师 教師 老师 先生 교사 医生 医師 审核员 標注 标注 評価者 사람 평가자 전문가 검수 仲裁"
)
_FINAL = (
    "final* nihai consens* konsens* arbit* adjudicat* agreed reconciled retenu* endgültig* "
    "definitiv* 仲裁 最終 最终 確定 确定"
)
"""What people agreed on in the end, or one of them decided."""
_OF_SYSTEM = frozenset(
    ["verdict", "decision", "answer", "output", "response", "result", "status", "prediction"]
)
"""Beside ``final`` these may be a pipeline's."""
_PERHAPS = (
    "teacher* dozent* docent* lecturer* tutor* professor* profesor* doctor* nurse clinician lawyer "
    "editor* manager* supervisor* author* analyst* team me "
    "my mine our ours us hand by mr ms mrs dr prof thumb* feedback"
)
"""These name people only where another column is clearly the judge's."""
_JUDGED = (
    "correct* corret* corrett* korrekt* richtig* right wrong accurate accept* good ok okay "
    "agree* valid true faithful* grounded support* helpful* relevan* appropriate* adequa* satisf* "
    "useful safe polite pass passes approve* works answer* answered 正 올바"
)
"""What people are asked about an output: "Is it correct?", not "Is it urgent?"."""
_CRITERIA = (
    "accura* corret* corrett* correct* korrekt* richtig* exact* précis* faithful* ground* factual* "
    "relevan* helpful* useful* complete* vollständig* complétude concis* clar* klar* fluen* "
    "flüssig* coheren* cohéren* consisten* tone ton tono style stil* polite* höflich* safe* "
    "harmless* toxic* hallucinat* readab* adequa* empath* format* grammar* brevity depth "
    "准确* 正确* 完整* 清晰* 流畅* 相关* 语气* 礼貌* 正確* 明確* 流暢* 関連* 丁寧* "
    "정확* 명확* 유창* 관련*"
)
"""Criteria that outputs are judged by, where persons' names could stand, too."""
_WHAT = (
    "score scores label labels verdict rating ratings grade judgement judgment decision choice "
    "pred prediction value result answer reason reasons explanation comment model name id response "
    "output raw winner text said check pick feedback note nota noten "
    "점수 평점 評価 得点 评分 評分 打分 得分 分数"
)
"""What was said, without saying on what."""

_ASIAN = r"\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af"
_TOKEN = re.compile(rf"[{_ASIAN}]+|[^\W_{_ASIAN}]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PAREN = re.compile(r"\([^)]*\d[^)]*\)")
"""A scale in a name: ``(1-5)``."""


def tokens(name: str) -> list[str]:
    """The words of a name.

    >>> tokens("humanLabel"), tokens("LLM判定_正確性"), tokens("GPT-4o score (1-5)")
    (['human', 'label'], ['llm', '判定', '正確性'], ['gpt', '4o', 'score'])
    """
    return _TOKEN.findall(caseless(_CAMEL.sub(" ", _PAREN.sub(" ", name))))


def _is_one(token: str, words: str) -> bool:
    return any(
        word in (token, token.rstrip("0123456789"))
        or (word[-1] == "*" and token.startswith(word[:-1]))
        or (word[0] > "\u3000" and word in token)
        for word in words.split()
    )


@lru_cache(maxsize=10_000)
def who(name: str) -> str | None:
    """Whom a name names: a judge, a person, or neither.

    >>> who("gpt-4o"), who("QA check"), who("llm_annotator"), who("human_judge"), who("topic")
    ('judge', 'person', 'judge', 'person', None)
    """
    words = tokens(name)
    if "qa" in words and any(_is_one(word, _CRITERIA) for word in words):
        words.remove("qa")  # Question answering: QA Correctness.
    for kinds, named in ((_MODELS, JUDGE), (_PEOPLE, PERSON), (_JUDGES, JUDGE)):
        if any(_is_one(word, kinds) for word in words):
            return named
    return None


def person_at_edge(name: str, anywhere: bool = False) -> str | None:
    """The word for a person at the start or the end of a name that names no judge, or in it."""
    words = tokens(name)
    if who(name) != PERSON:
        return None
    ends = words if anywhere else words[:1] + words[-1:]
    named = (w.strip("*") for end in ends for w in _PEOPLE.split() if _is_one(end, w))
    return next(named, None)


def is_final(name: str) -> bool:
    """Whether a name is of the label that people agreed on, or that one of them decided."""
    words = tokens(name)
    return any(_is_one(w, _FINAL) for w in words) and not {*words} & _OF_SYSTEM


def is_perhaps_person(name: str) -> bool:
    """Whether a name may be a person's: a word for one, or a question to people on an output.

    >>> [is_perhaps_person(name) for name in ("my_label", "acceptable?", "topic", "is_urgent?")]
    [True, True, False, False]
    """
    words = tokens(name)
    asks = name.rstrip().endswith("?") and any(_is_one(word, _JUDGED) for word in words)
    return asks or any(_is_one(word, _PERHAPS) for word in words)


_DEFECTS = (
    "hallucinat* unfaithful* unsafe* toxic* harmful* spam* biased offensive* hate* hateful abus* "
    "insult* violat* flagged jailbreak* nsfw unethical halluzin* alucina*"
)
"""What a 1 may count as well as its absence."""
_ABSENT = frozenset(["no", "not", "non", "free", "without", "un"])
_LEGEND = re.compile(r"\b([01])\s*(?:=|:|is|means)\s*((?:not |non-?)?[^\W\d]+)")


def names_defect(text: str) -> bool | None:
    """Whether a 1 in a column of this name, or a label, says that a defect is there; False where
    it says something good, None for another name.

    >>> [names_defect(name) for name in ("is_toxic", "not toxic", "faithfulness", "my label")]
    [True, False, False, None]
    >>> names_defect("label (1 = hallucinated)"), names_defect("label (0 = unsafe, 1 = safe)")
    (True, False)
    """
    if legend := {digit: names_defect(word) for digit, word in _LEGEND.findall(text.casefold())}:
        return legend["1"] if "1" in legend else not legend["0"]
    words = _TOKEN.findall(caseless(_CAMEL.sub(" ", text)))
    if any(_is_one(word, _DEFECTS) for word in words):
        return not _ABSENT & {*words}
    return False if any(_is_one(word, f"{_JUDGED} {_CRITERIA}") for word in words) else None


_VERSION = re.compile(r"\d|(mini|nano|turbo|pro|flash|lite|instruct)$")
"""In a model's name, what is no subject."""


def subject(name: str) -> str:
    """What a verdict is about: its name without who said it and what was said.

    >>> subject("人工准确性评分"), subject("Rater 2 tone"), subject("GPT-4o tone"), subject("judge")
    ('准确性', 'tone', 'tone', '')
    """
    left, by_model = [], who(name) == JUDGE
    for word in tokens(name):
        if word.isdecimal() or (by_model and _VERSION.match(word)):
            continue  # The number of a person, or a model's version.
        if word[0] > "\u3000":
            word = _SAID.sub("", word)
        elif any(_is_one(word, kinds) for kinds in (_MODELS, _JUDGES, _PEOPLE, _WHAT)):
            continue
        left += [word] if word else []
    return "_".join(left)


_SAID = re.compile(
    "|".join(
        sorted(
            {w for w in f"{_MODELS} {_JUDGES} {_PEOPLE} {_WHAT}".split() if w[0] > "\u3000"},
            key=len,
            reverse=True,
        )
    )
)
"""Who said it and what was said, in languages that write no spaces."""


def akin(one: str, other: str) -> bool:
    """Whether two names, as `subject` has them, share a word but for its ending.

    >>> akin("faithful", "faithfulness"), akin("relevant", "answer_relevancy"), akin("a", "b")
    (True, True, False)
    """
    return any(_same_stem(a, b) for a, b in product(one.split("_"), other.split("_")))


def _same_stem(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if not short:
        return False
    least = 2 if short[:1] > "\u3000" else 4
    n = max(least, len(short) - 2)
    return (
        one == other
        or (len(short) > 2 and long.startswith(short))
        or (len(short) >= n and short[:n] == long[:n])
    )


def is_criterion(stem: str) -> bool:
    """Whether a subject is a usual criterion.

    >>> is_criterion("tone"), is_criterion("anna")
    (True, False)
    """
    return any(_is_one(word, _CRITERIA) for word in stem.split("_"))


def matched(ours: Iterable[str], theirs: Iterable[str]) -> dict[str, str]:
    """A subject of people's columns -> the judge's on the same criterion: an equal one, else the
    only one that is `akin`; none where that is unclear.

    >>> matched(["answer_relevancy", "faithfulness"], ["faithful", "relevant", "tone"])
    {'faithful': 'faithfulness', 'relevant': 'answer_relevancy'}
    """
    ours, theirs = list(ours), list(theirs)
    pairs = {stem: stem for stem in theirs if stem in ours}
    free = _without_common([stem for stem in ours if stem not in pairs])
    left = _without_common([stem for stem in theirs if stem not in pairs])
    for stem, own in left.items():
        near = [each for each, words in free.items() if akin(own, words)]
        if len(near) == 1 and sum(akin(other, free[near[0]]) for other in left.values()) == 1:
            pairs[stem] = near[0]
    return pairs


def _without_common(stems: list[str]) -> dict[str, str]:
    """Subjects without the words that all of them have: ``metadata_tone``, ``metadata_style``."""
    words = {stem: stem.split("_") for stem in stems}
    common = set.intersection(*map(set, words.values())) if len(words) > 1 else set[str]()
    return {stem: "_".join(w for w in each if w not in common) for stem, each in words.items()}
