"""Relevance from a BEIR set (Thakur et al. 2021): a judged positive against a hard negative."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense_dataset.sources import loader

TASK = "relevance"
_QUERY = {"_id": str, "text": str}
_PASSAGE = {"_id": str, "title": object, "text": str}
_DEPTH = 20
"""How far down a BM25 ranking to look for passages that are not judged."""


class _Question(NamedTuple):
    query_id: str
    query: str
    positive: str


def collect_set(name: str, reader: loader.Reader, n: int | None, seed: int) -> loader.Collected:
    """Draw n queries of ``BeIR/<name>``: the passage judged relevant and BM25's best unjudged one.

    Gold is the judged passage, which is passage A in half of the items. The cluster is the query.
    Every split of the judgements is used; queries that share a passage come last. The negative is
    not proven irrelevant: BEIR judges few passages per query, and an unjudged one may be relevant.
    If ``n`` is None, every judged passage of every query is an item.
    """
    hub_id = f"BeIR/{name}"
    qrels = reader.splits(
        f"{hub_id}-qrels", None, {"query-id": object, "corpus-id": object, "score": int}, "unknown"
    )
    queries = reader.split(hub_id, "queries", "queries", _QUERY, "unknown")
    corpus = reader.split(hub_id, "corpus", "corpus", _PASSAGE, "unknown")
    passages, empty = _passages(corpus)
    judgements, positives = _judgements(qrels.values())
    questions, repeated = _questions(queries, positives, passages)
    rng = loader.generator(seed, f"beir:{name}")
    if n is not None:
        questions = list({q.query_id: q for q in loader.shuffled(questions, rng)}.values())
    candidates = loader.shuffled(questions, rng)
    # Some queries have no negative within reach; spare queries replace them.
    negatives = _hard_negatives(candidates, passages, judgements)
    usable = [question for question in candidates if question in negatives]
    if n is not None and n > len(usable):
        raise JudgeSenseError(
            f"too few items: {len(usable)} queries of {hub_id} have a passage judged relevant and "
            f"an unjudged one among BM25's first {_DEPTH}, but {n} were requested"
        )
    sample = usable if n is None else _apart(usable, negatives)[:n]
    positives_first = loader.halves(len(sample), rng)
    items = []
    for question, positive_first in zip(sample, positives_first, strict=True):
        texts = [passages[question.positive], passages[negatives[question]]]
        ids = [question.positive, negatives[question]]
        if not positive_first:
            texts.reverse()
            ids.reverse()
        fields = {"query": question.query, "passage_a": texts[0], "passage_b": texts[1]}
        items.append(
            corpus.item(
                f"{name}-{question.query_id}-{question.positive}",
                TASK,
                fields,
                "A" if positive_first else "B",
                f"{name}-{question.query_id}",
                "|".join(ids),
            )
        )
    judged_revision = next(iter(qrels.values())).revision
    notes = [
        "The negative is the unjudged passage that BM25 (bm25s, Lucene variant) ranks highest for "
        f"the query (judgements: {hub_id}-qrels at {judged_revision}). An unjudged passage is not "
        "proven irrelevant: some gold labels may be wrong.",
        "system_id holds the ids of the two passages in the order AB.",
    ]
    if empty:
        notes.append(f"{empty} passages without text were left out.")
    if repeated:
        notes.append(f"{repeated} judgements repeat another's query and passage and were left out.")
    return loader.Collected(items, notes)


def _apart(questions: list[_Question], negatives: Mapping[_Question, str]) -> list[_Question]:
    """The questions in order, with those last that share a passage with an earlier one."""
    passages_used: set[str] = set()
    first: list[_Question] = []
    last: list[_Question] = []
    for question in questions:
        passages = {question.positive, negatives[question]}
        (last if passages & passages_used else first).append(question)
        passages_used |= passages
    return first + last


def _passages(corpus: loader.SourceTable) -> tuple[dict[str, str], int]:
    texts: dict[str, str] = {}
    empty = 0
    for place, row in corpus:
        if row["_id"] in texts:
            raise JudgeSenseError(f"{place}, column _id: {row['_id']!r} occurs twice")
        if not row["text"].strip():
            empty += 1
            continue
        texts[row["_id"]] = loader.clean_text(f"{row['title'] or ''} {row['text']}", place, "text")
    return texts, empty


def _judgements(
    tables: Iterable[loader.SourceTable],
) -> tuple[dict[str, set[str]], dict[str, list[str]]]:
    passages_of: dict[str, set[str]] = defaultdict(set)
    positives: dict[str, list[str]] = defaultdict(list)
    for table in tables:
        for _, row in table:
            query, passage = str(row["query-id"]), str(row["corpus-id"])
            if row["score"] > 0 and passage not in positives[query]:
                positives[query].append(passage)
            passages_of[query].add(passage)
    return passages_of, positives


def _questions(
    queries: loader.SourceTable, positives: Mapping[str, list[str]], passages: Mapping[str, str]
) -> tuple[list[_Question], int]:
    """Each query with each relevant passage, once; and the number of copies left out.

    Some sets list one query under two ids; the same texts must not become two items.
    """
    by_query: dict[str, list[_Question]] = {}
    for place, row in queries:
        name = row["_id"]
        if name in by_query:
            raise JudgeSenseError(f"{place}, column _id: {name!r} occurs twice")
        query = loader.clean_text(row["text"], place, "text")
        by_query[name] = [
            _Question(name, query, p) for p in positives.get(name, []) if p in passages
        ]
    pairs = [question for group in by_query.values() for question in group]
    by_text = {(question.query, passages[question.positive]): question for question in pairs[::-1]}
    distinct = set(by_text.values())
    first = [question for question in pairs if question in distinct]
    return first, len(pairs) - len(first)


def _hard_negatives(
    questions: list[_Question], passages: Mapping[str, str], judged_passages: Mapping[str, set[str]]
) -> dict[_Question, str]:
    try:
        import bm25s
    except ImportError as error:
        raise MissingExtraError("bm25s", "data", "finding hard negatives") from error

    ids = list(passages)
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(passages.values()), show_progress=False), show_progress=False)
    negatives: dict[_Question, str] = {}
    tokens = bm25s.tokenize(
        [question.query for question in questions], return_ids=False, show_progress=False
    )
    for question, words in zip(questions, tokens, strict=True):
        if not words:
            continue
        depth = min(_DEPTH + len(judged_passages[question.query_id]), len(ids))
        ranked, scores = index.retrieve([words], k=depth, show_progress=False)
        # Equal scores are in the order of the corpus, whatever the sort did.
        order = sorted(zip(-scores[0], ranked[0], strict=True))
        for score, at in order:
            passage = ids[at]
            distinct = passages[passage] != passages[question.positive]
            if score < 0 and distinct and passage not in judged_passages[question.query_id]:
                negatives[question] = passage
                break
    return negatives


_KNOWN = {"scifact": ("SciFact", "wadden2020scifact")}
"""The titles and citations of sets; other sets are cited as BEIR alone."""


def beir_source(name: str) -> loader.DataSource:
    """The set ``BeIR/<name>`` as a source."""
    title, *keys = _KNOWN.get(name, (name,))
    collect = partial(collect_set, name)
    return loader.DataSource(TASK, f"BEIR {title}", collect, ("thakur2021beir", *keys))
