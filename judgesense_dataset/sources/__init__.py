"""Where items come from: one module a public set, and one for data of your own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from judgesense.errors import JudgeSenseError
from judgesense_dataset.sources import beir, mtbench, summeval, truthfulqa
from judgesense_dataset.sources.loader import Collected, Reader

__all__ = ["NAMES", "Collected", "Reader", "Source", "get_source"]


@dataclass(frozen=True)
class Source:
    """A public set as a source of items for one task.

    ``collect(reader, n, seed)`` gives n items, or all with ``n`` None; ``citation`` is BibTeX.
    """

    name: str
    task: str
    title: str
    collect: Callable[[Reader, int | None, int], Collected]
    citation: str


_BEIR = """@inproceedings{thakur2021beir,
  title = {{BEIR}: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models},
  author = {Thakur, Nandan and Reimers, Nils and R{\\"u}ckl{\\'e}, Andreas and Srivastava, Abhishek and Gurevych, Iryna},
  booktitle = {NeurIPS Datasets and Benchmarks Track},
  year = {2021}
}"""  # noqa: E501

_SCIFACT = """@inproceedings{wadden2020scifact,
  title = {Fact or Fiction: Verifying Scientific Claims},
  author = {Wadden, David and Lin, Shanchuan and Lo, Kyle and Wang, Lucy Lu and van Zuylen, Madeleine and Cohan, Arman and Hajishirzi, Hannaneh},
  booktitle = {Proceedings of EMNLP},
  year = {2020}
}"""  # noqa: E501

_SOURCES = {
    source.name: source
    for source in (
        Source(
            "truthfulqa",
            truthfulqa.TASK,
            "TruthfulQA",
            truthfulqa.collect,
            """@inproceedings{lin2022truthfulqa,
  title = {{TruthfulQA}: Measuring How Models Mimic Human Falsehoods},
  author = {Lin, Stephanie and Hilton, Jacob and Evans, Owain},
  booktitle = {Proceedings of ACL},
  year = {2022}
}""",
        ),
        Source(
            "summeval",
            summeval.TASK,
            "SummEval",
            summeval.collect,
            """@article{fabbri2021summeval,
  title = {{SummEval}: Re-evaluating Summarization Evaluation},
  author = {Fabbri, Alexander R. and Kry{\\'s}ci{\\'n}ski, Wojciech and McCann, Bryan and Xiong, Caiming and Socher, Richard and Radev, Dragomir},
  journal = {Transactions of the Association for Computational Linguistics},
  volume = {9},
  pages = {391--409},
  year = {2021}
}""",  # noqa: E501
        ),
        Source(
            "scifact",
            beir.TASK,
            "BEIR SciFact",
            partial(beir.collect_set, "scifact"),
            f"{_BEIR}\n\n{_SCIFACT}",
        ),
        Source(
            "mtbench",
            mtbench.TASK,
            "MT-Bench human judgments",
            mtbench.collect,
            """@inproceedings{zheng2023judging,
  title = {Judging {LLM}-as-a-Judge with {MT-Bench} and {Chatbot Arena}},
  author = {Zheng, Lianmin and Chiang, Wei-Lin and Sheng, Ying and Zhuang, Siyuan and Wu, Zhanghao and Zhuang, Yonghao and Lin, Zi and Li, Zhuohan and Li, Dacheng and Xing, Eric P. and Zhang, Hao and Gonzalez, Joseph E. and Stoica, Ion},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2023}
}""",  # noqa: E501
        ),
    )
}

NAMES = tuple(_SOURCES)
"""The sources that ``all`` stands for, one for each task."""


def get_source(name: str) -> Source:
    """The source of that name; ``beir:<set>`` is any other BEIR set.

    Raises JudgeSenseError for an unknown name, listing those that exist.
    """
    if name in _SOURCES:
        return _SOURCES[name]
    if name.startswith("beir:") and name != "beir:":
        set_name = name.removeprefix("beir:")
        return Source(
            name, beir.TASK, f"BEIR {set_name}", partial(beir.collect_set, set_name), _BEIR
        )
    raise JudgeSenseError(
        f"unknown source {name!r}; there are {', '.join(NAMES)}, all, beir:<set> and own"
    )
