"""Relevance from SciFact (Wadden et al. 2020), the BEIR set of ``--source all``."""

from __future__ import annotations

from judgesense_dataset.sources.beir import beir_source

SOURCE = beir_source(
    "scifact",
    "SciFact",
    """@inproceedings{wadden2020scifact,
  title = {Fact or Fiction: Verifying Scientific Claims},
  author = {Wadden, David and Lin, Shanchuan and Lo, Kyle and Wang, Lucy Lu and van Zuylen, Madeleine and Cohan, Arman and Hajishirzi, Hannaneh},
  booktitle = {Proceedings of EMNLP},
  year = {2020}
}""",  # noqa: E501
)
