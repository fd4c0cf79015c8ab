"""The file of somebody else: which host and which key it may use, and who allowed it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.studies.custom import run_study
from local_judges.registry import resolve

FILE = """\
judgesense_judge: 2
judge: {{name: m@1, judge: {judge}, engine: {engine}, model: m, options: {{{options}}}}}
tasks:
  polite:
    labels: ["YES", "NO"]
    layout: "{{instruction}}\\n\\n{{text}}"
    templates:
    - {{id: one, text: "Is it polite? YES or NO."}}
rule: {{remedy: as asked, wordings: [one], orders: ["-"], read: vote}}
{more}
"""
SECOND = """\
margin: 0.5
combine: cascade
others:
- judge: {{name: n@1, judge: n, engine: api, model: n, options: {{base_url: "{url}"}}}}
  rule: {{remedy: as asked, wordings: [one], orders: ["-"], read: vote}}
"""
FOREIGN = "https://collector.example.org/v1"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("JUDGESENSE_JUDGES", raising=False)
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "sk-of-the-user")
    return tmp_path / "config"


def judge_file(
    folder: Path, options: str = "", judge: str = "m", more: str = "", engine: str = "api"
) -> Path:
    path = folder / "judge.yaml"
    path.write_text(FILE.format(options=options, judge=judge, more=more, engine=engine))
    return path


@pytest.mark.parametrize("engine", ["api", "systemone"])
def test_a_file_may_not_name_a_host_of_its_own(tmp_path: Path, engine: str) -> None:
    path = judge_file(tmp_path, f'base_url: "{FOREIGN}"', engine=engine)
    with pytest.raises(JudgeSenseError, match=r"--allow-host collector\.example\.org"):
        resolve(str(path))


@pytest.mark.parametrize(
    "options",
    [
        'key_variable: AWS_SECRET_ACCESS_KEY, base_url: "https://api.openai.com/v1"',
        'key_variable: AWS_SECRET_ACCESS_KEY, base_url: "http://127.0.0.1:9/v1"',
        f'key_variable: AWS_SECRET_ACCESS_KEY, base_url: "{FOREIGN}"',
    ],
)
def test_a_file_never_names_a_variable_outside_the_registry(tmp_path: Path, options: str) -> None:
    path = judge_file(tmp_path, options)
    for allowed in ((), ("collector.example.org", "api.openai.com")):
        with pytest.raises(JudgeSenseError, match="AWS_SECRET_ACCESS_KEY, which no judge"):
            resolve(str(path), allow_host=allowed)


@pytest.mark.parametrize(
    ("judge", "options"),
    [
        ("gpt-4o", f'base_url: "{FOREIGN}"'),  # a known name at another address
        ("m", 'key_variable: OPENAI_API_KEY, base_url: "https://api.mistral.ai/v1"'),
        ("m", 'base_url: "https://api.openai.com.example.org/v1"'),
        ("m", 'base_url: "https://api.openai.com@collector.example.org/v1"'),
    ],
)
def test_a_key_goes_only_to_the_hosts_that_the_registry_pairs_it_with(
    tmp_path: Path, judge: str, options: str
) -> None:
    with pytest.raises(JudgeSenseError, match=r"allow-host|user name|password"):
        resolve(str(judge_file(tmp_path, options, judge)))


@pytest.mark.parametrize(
    "options",
    [
        "",
        'base_url: "https://api.openai.com/v1"',
        'key_variable: MISTRAL_API_KEY, base_url: "https://api.mistral.ai/v1"',
        'base_url: "http://127.0.0.1:8000/v1"',
    ],
)
def test_hosts_of_the_registry_and_of_this_machine_need_no_consent(
    tmp_path: Path, options: str
) -> None:
    assert resolve(str(judge_file(tmp_path, options))).engine == "api"


def test_every_judge_of_a_file_is_checked(tmp_path: Path) -> None:
    path = judge_file(tmp_path, more=SECOND.format(url=FOREIGN))
    with pytest.raises(JudgeSenseError, match=r"--allow-host collector\.example\.org"):
        resolve(str(path))
    assert len(resolve(str(path), allow_host="collector.example.org").others) == 1


def test_consent_is_remembered_for_the_file_as_it_is(tmp_path: Path) -> None:
    path = judge_file(tmp_path, f'base_url: "{FOREIGN}"')
    resolve(str(path), allow_host="collector.example.org")
    assert resolve(str(path)).options["base_url"] == FOREIGN
    path.write_text(path.read_text().replace("polite?", "polite or not?"))
    with pytest.raises(JudgeSenseError, match="--allow-host"):
        resolve(str(path))


def test_consent_is_asked_again_where_what_was_kept_is_damaged(tmp_path: Path, home: Path) -> None:
    path = judge_file(tmp_path, f'base_url: "{FOREIGN}"')
    resolve(str(path), allow_host="collector.example.org")
    (home / "judgesense" / "allowed_hosts.json").write_text("[1")
    with pytest.raises(JudgeSenseError, match="--allow-host"):
        resolve(str(path))


def test_a_host_that_the_user_gives_needs_no_consent(tmp_path: Path) -> None:
    path = judge_file(tmp_path)
    assert resolve(str(path), base_url=FOREIGN).options["base_url"] == FOREIGN


def test_a_line_in_the_users_own_registry_is_consent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = tmp_path / "mine.yaml"
    registry.write_text(
        f"endpoints:\n  ours: {{base_url: '{FOREIGN}', key_variable: OUR_KEY}}\n"
        "judges:\n  ours: {endpoint: ours, model: m}\n"
    )
    monkeypatch.setenv("JUDGESENSE_JUDGES", str(registry))
    path = judge_file(tmp_path, f'key_variable: OUR_KEY, base_url: "{FOREIGN}"')
    assert resolve(str(path)).options["key_variable"] == "OUR_KEY"


def test_a_study_of_somebody_else_needs_consent_as_well(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text('{"item_id": "1", "text": "Thanks.", "gold": "YES"}\n')
    study = tmp_path / "study.yaml"
    study.write_text(
        "items: items.jsonl\n"
        f"judges: [{{name: m, engine: api, base_url: '{FOREIGN}'}}]\n"
        "tasks:\n  polite:\n    labels: ['YES', 'NO']\n"
        '    layout: "{instruction}\\n\\n{text}"\n'
        "    templates:\n    - {id: one, text: 'Polite? YES or NO.'}\n"
        "    - {id: two, text: 'Is it polite? YES or NO.'}\n"
    )
    with pytest.raises(JudgeSenseError, match=r"--allow-host collector\.example\.org"):
        run_study(study, tmp_path / "out")
    assert not (tmp_path / "out" / "run" / "decisions").exists()


@pytest.mark.parametrize("command", ["judge", "serve", "run", "check", "improve"])
def test_each_command_that_takes_a_judge_refuses_it_first(tmp_path: Path, command: str) -> None:
    path = str(judge_file(tmp_path, f'base_url: "{FOREIGN}"'))
    items = tmp_path / "items.jsonl"
    items.write_text("".join(f'{{"item_id": "{n}", "text": "T", "gold": "YES"}}\n' for n in "ab"))
    rubric = tmp_path / "rubric.txt"
    rubric.write_text("Is {text} polite? YES or NO.")
    out = ["--out", str(tmp_path / "out")]
    given = {
        "judge": ["judge", str(items), "--judge", path, "--out", str(tmp_path / "out.csv")],
        "serve": ["serve", path, "--port", "0"],
        "run": ["run", "--judge", path, *out],
        "check": ["check", str(rubric), "--data", str(items), "--judge", path, *out],
        "improve": [
            "improve",
            str(rubric),
            "--data",
            str(items),
            "--judge",
            path,
            "--out",
            "j.yaml",
        ],
    }
    with pytest.raises(JudgeSenseError, match=r"collector\.example\.org"):
        CliRunner().invoke(app, given[command], catch_exceptions=False)
