from __future__ import annotations

from pathlib import Path

import pytest

from pii_bench.errors import InputFileError
from pii_bench.runs.matrix import Cell, Matrix, read_matrix

WHOLE = """
models = ["gpt4o", "gold+keyword", "local/smollm2-135m-instruct", "replay:gold.jsonl"]
strategies = ["naive", "self-cot"]
datasets = ["demo", "capid:test.jsonl"]
task = "masking"
limit = 50
concurrency = 16
max_usd = 5
results = "build/out"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "bench.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_key(tmp_path: Path) -> None:
    assert read_matrix(write(tmp_path, WHOLE)) == Matrix(
        models=("gpt4o", "gold+keyword", "local/smollm2-135m-instruct", "replay:gold.jsonl"),
        strategies=("naive", "self-cot"),
        datasets=("demo", "capid:test.jsonl"),
        task="masking",
        limit=50,
        concurrency=16,
        max_usd=5,
        results=Path("build/out"),
    )


def test_what_is_left_out_is_as_without_a_file(tmp_path: Path) -> None:
    matrix = read_matrix(write(tmp_path, 'models = ["encoder"]\ndatasets = ["all"]'))

    assert matrix == Matrix(
        models=("encoder",),
        datasets=("all",),
        strategies=("naive",),
        task="all",
        limit=None,
        concurrency=None,
        max_usd=None,
        results=Path("results"),
    )


def test_strategies_apply_to_chat_models_alone(tmp_path: Path) -> None:
    cells = read_matrix(write(tmp_path, WHOLE)).cells()

    assert [(cell.name, cell.is_chat, cell.is_called) for cell in cells] == [
        ("gpt4o+naive", True, True),
        ("gpt4o+self-cot", True, True),
        ("gold+keyword", False, False),
        ("local/smollm2-135m-instruct+naive", True, False),
        ("local/smollm2-135m-instruct+self-cot", True, False),
        ("replay:gold.jsonl+naive", True, False),
        ("replay:gold.jsonl+self-cot", True, False),
    ]


def test_rewriting_has_one_strategy() -> None:
    matrix = Matrix(("gpt4o", "encoder"), ("demo",), ("naive", "self-cot"), task="rewrite")

    assert matrix.cells() == [Cell("gpt4o", "rewrite"), Cell("encoder", None)]


def test_detection_has_one_prompt_whatever_the_strategies() -> None:
    matrix = Matrix(("gpt4o",), ("demo",), ("naive", "self-cot"), task="detection")

    assert matrix.cells() == [Cell("gpt4o", None)]


def test_a_name_that_comes_twice_is_run_once(tmp_path: Path) -> None:
    text = 'models = ["gold", "gold"]\ndatasets = ["demo", "demo"]'

    matrix = read_matrix(write(tmp_path, text))

    assert (matrix.models, matrix.datasets) == (("gold",), ("demo",))


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ('model = ["gold"]', "unknown key 'model'; did you mean 'models'?"),
        ("max_used = 5", "unknown key 'max_used'; did you mean 'max_usd'?"),
        ("[run]\nlimit = 5", "unknown key 'run'"),
        ('models = "gold"', "'models' must be a list of at least one name, not 'gold'"),
        ("models = []", "'models' must be a list of at least one name, not []"),
        ("models = [1]", "'models' must be a list of at least one name, not [1]"),
        ('models = [" "]', "'models' must be a list of at least one name, not [' ']"),
        ("strategies = []", "'strategies' must be a list of at least one name"),
        ('datasets = "all"', "'datasets' must be a list of at least one name"),
        ("limit = 0", "'limit' must be a whole number from 1, not 0"),
        ("limit = true", "'limit' must be a whole number from 1, not True"),
        ("limit = 1.0", "'limit' must be a whole number from 1, not 1.0"),
        ('limit = "5"', "'limit' must be a whole number from 1, not '5'"),
        ("concurrency = 1001", "'concurrency' must be a whole number from 1 to 1000, not 1001"),
        ("max_usd = 0", "'max_usd' must be a sum above 0 in USD, not 0"),
        ("max_usd = inf", "'max_usd' must be a sum above 0 in USD, not inf"),
        ("max_usd = nan", "'max_usd' must be a sum above 0 in USD, not nan"),
        ("max_usd = true", "'max_usd' must be a sum above 0 in USD, not True"),
        ('max_usd = "5"', "'max_usd' must be a sum above 0 in USD, not '5'"),
        ("results = 5", "'results' must be the path of a folder, not 5"),
        ('results = ""', "'results' must be the path of a folder, not ''"),
        ("task = 1", "'task' must be a name, not 1"),
        ('task = "maskin"', "unknown task 'maskin'; did you mean 'masking'?"),
        ('strategies = ["self-cott"]', "unknown strategy 'self-cott'; did you mean 'self-cot'?"),
        ('models = ["gold", "gpt-4o"]', "unknown model 'gpt-4o'; did you mean 'gpt4o'?"),
        ('models = ["opnai/m"]', "unknown provider 'opnai'; did you mean 'openai'?"),
        ('models = ["openai/"]', "model 'openai/': after openai/ comes the name of a model"),
        ('models = ["gold+keywrd"]', "unknown relevance system 'keywrd'; did you mean 'keyword'?"),
        ("limit = ", "not valid TOML: Invalid value"),
    ],
)
def test_a_wrong_file(tmp_path: Path, key: str, what: str) -> None:
    name = key.partition(" ")[0]
    others = {"models": 'models = ["gold"]\n', "datasets": 'datasets = ["demo"]\n'}
    path = write(tmp_path, "".join(each for of, each in others.items() if of != name) + key)

    with pytest.raises(InputFileError) as caught:
        read_matrix(path)

    assert str(caught.value).startswith(f"{path}: {what}")


@pytest.mark.parametrize(("left", "key"), [("datasets", "models"), ("models", "datasets")])
def test_models_and_datasets_are_needed(tmp_path: Path, left: str, key: str) -> None:
    path = write(tmp_path, f'{left} = ["demo"]')

    with pytest.raises(InputFileError, match=f"'{key}' is missing"):
        read_matrix(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"gone\.toml: No such file or directory"):
        read_matrix(tmp_path / "gone.toml")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "bench.toml"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(InputFileError, match="not valid TOML"):
        read_matrix(path)
