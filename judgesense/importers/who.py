"""Tell from a name whether a judge or a person gave a label, in the languages of the files.

One table for the names of columns, the keys of objects and the names of annotators.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

JUDGE, PERSON = "judge", "person"

_MODELS = (
    "llm llms ai ki ia gpt* chatgpt* claude* gemini* llama* qwen* mistral* mixtral* ministral* "
    "gemma* deepseek* grok* sonnet* haiku* opus* o1 o3 o4 kimi* glm* phi phi3 phi4 yi ernie* "
    "falcon* vicuna* granite* nemotron* hunyuan* palm bard davinci* selene prometheus geval "
    "auto autograde autograder autorater autoeval autoscore automated automatic automatisch* "
    "automatique automático automática model models modelo* modello modèle* modele modell bot "
    "machine 模型 自動 自动 機械 모델 자동"
)
"""A model, also where other words name people: ``llm_annotator``."""
_JUDGES = (
    "judge judges juge juez jueza juiz juíza giudice giudizio richter grader scorer verifier "
    "evaluator eval evals classifier predicted prediction 裁判 判定 심사 판정"
)
_PEOPLE = (
    "human* humain* people person persona expert* esperto esperti especialista* specialist sme "
    "smes reviewer* rater* voter* annotator* annotated annotation* annotatore annotateur* "
    "anotador* anotadora labeler* labeller* coder* worker* crowd* qa panel gold golden truth "
    "manual* manuell* manuel* mensch* menschlich* prüfer* pruefer* gutachter* moderator* revisor* "
    "revisore évaluateur* evaluateur* evaluador* avaliador* valutatore beoordelaar* mos "
    "人手 人工 人間 人间 人类 专家 専門家 標注 标注 評価者 사람 평가자 전문가 검수"
)
_PERHAPS = (
    "teacher* doctor* nurse clinician lawyer editor* manager* supervisor* author* analyst* team me "
    "my mine our ours us hand by mr ms mrs dr prof thumb* feedback"
)
"""These name people only where another column is clearly the judge's."""
_JUDGED = (
    "correct* corret* corrett* korrekt* richtig* right wrong accurate accept* good ok okay "
    "agree* valid true faithful* grounded support* helpful* relevan* appropriate* adequa* satisf* "
    "useful safe polite pass passes approve* works answer* answered 正 올바"
)
"""What people are asked about an output: "Is it correct?", not "Is it urgent?"."""
_WHAT = (
    "score scores label labels verdict rating ratings grade judgement judgment decision choice "
    "pred prediction value result answer reason reasons explanation comment model name id response "
    "output raw winner text said check pick 점수 평점 評価 得点"
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
    text = unicodedata.normalize("NFKC", _PAREN.sub(" ", name))
    return _TOKEN.findall(_CAMEL.sub(" ", text).casefold())


def _is_one(token: str, words: str) -> bool:
    return any(
        token == word
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
    for kinds, named in ((_MODELS, JUDGE), (_PEOPLE, PERSON), (_JUDGES, JUDGE)):
        if any(_is_one(word, kinds) for word in words):
            return named
    return None


def person_at_edge(name: str) -> str | None:
    """The word for a person at the start or the end of a name that names no judge."""
    words = tokens(name)
    ends = [word for word in words[:1] + words[-1:] if _is_one(word, _PEOPLE)]
    return ends[0].rstrip("0123456789") if ends and who(name) == PERSON else None


def is_perhaps_person(name: str) -> bool:
    """Whether a name may be a person's: a word for one, or a question to people on an output.

    >>> [is_perhaps_person(name) for name in ("my_label", "acceptable?", "topic", "is_urgent?")]
    [True, True, False, False]
    """
    words = tokens(name)
    asks = name.rstrip().endswith("?") and any(_is_one(word, _JUDGED) for word in words)
    return asks or any(_is_one(word, _PERHAPS) for word in words)


def subject(name: str) -> str:
    """What a verdict is about: its name without who said it and what was said.

    >>> subject("LLM判定_正確性"), subject("human_tone_score"), subject("judge_rating")
    ('正確性', 'tone', '')
    """
    left = [
        word
        for word in tokens(name)
        if not any(_is_one(word, kinds) for kinds in (_MODELS, _JUDGES, _PEOPLE, _WHAT))
    ]
    return "_".join(left)
