from __future__ import annotations

from pathlib import Path

import pytest

from pii_bench.errors import InputFileError
from pii_bench.runs.matrix import Cell, Matrix, read_matrix

EVERY_KEY = """
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


def test_every_key_is_read(tmp_path: Path) -> None:
    assert read_matrix(write(tmp_path, EVERY_KEY)) == Matrix(
        models=("gpt4o", "gold+keyword", "local/smollm2-135m-instruct", "replay:gold.jsonl"),
        strategies=("naive", "self-cot"),
        datasets=("demo", "capid:test.jsonl"),
        task="masking",
        limit=50,
        concurrency=16,
        max_usd=5,
        results=Path("build/out"),
    )


def test_missing_keys_have_the_defaults_of_the_command(tmp_path: Path) -> None:
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


def test_strategies_apply_only_to_chat_models(tmp_path: Path) -> None:
    cells = read_matrix(write(tmp_path, EVERY_KEY)).cells()

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


def test_detection_does_not_depend_on_the_strategies() -> None:
    matrix = Matrix(("gpt4o",), ("demo",), ("naive", "self-cot"), task="detection")

    assert matrix.cells() == [Cell("gpt4o", None)]


def test_a_name_that_is_listed_twice_is_run_once(tmp_path: Path) -> None:
    text = 'models = ["gold", "gold"]\ndatasets = ["demo", "demo"]'

    matrix = read_matrix(write(tmp_path, text))

    assert (matrix.models, matrix.datasets) == (("gold",), ("demo",))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ('model = ["gold"]', "unknown key 'model'; did you mean 'models'?"),
        ("max_used = 5", "unknown key 'max_used'; did you mean 'max_usd'?"),
        ("[run]\nlimit = 5", "unknown key 'run'"),
        ('models = "gold"', "'models' must be a list of at least one name, not 'gold'"),
        ("models = []", "'models' must be a list of at least one name, not []"),
        ('models = [" "]', "'models' must be a list of at least one name, not [' ']"),
        ("limit = 0", "'limit' must be a whole number from 1, not 0"),
        ("limit = true", "'limit' must be a whole number from 1, not True"),
        ("limit = 1.0", "'limit' must be a whole number from 1, not 1.0"),
        ("concurrency = 1001", "'concurrency' must be a whole number from 1 to 1000, not 1001"),
        ("max_usd = 0", "'max_usd' must be a sum above 0 in USD, not 0"),
        ("max_usd = inf", "'max_usd' must be a sum above 0 in USD, not inf"),
        ("max_usd = nan", "'max_usd' must be a sum above 0 in USD, not nan"),
        ("max_usd = true", "'max_usd' must be a sum above 0 in USD, not True"),
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
def test_an_invalid_key_is_reported(tmp_path: Path, key: str, message: str) -> None:
    required = ['models = ["gold"]', 'datasets = ["demo"]']
    name = key.partition(" ")[0]
    others = [line for line in required if not line.startswith(f"{name} ")]
    path = write(tmp_path, "\n".join([*others, key]))

    with pytest.raises(InputFileError) as caught:
        read_matrix(path)

    assert str(caught.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize(("present", "missing"), [("datasets", "models"), ("models", "datasets")])
def test_models_and_datasets_are_required(tmp_path: Path, present: str, missing: str) -> None:
    path = write(tmp_path, f'{present} = ["demo"]')

    with pytest.raises(InputFileError, match=f"'{missing}' is missing"):
        read_matrix(path)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"gone\.toml: No such file or directory"):
        read_matrix(tmp_path / "gone.toml")


def test_a_binary_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "bench.toml"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(InputFileError, match="not valid TOML"):
        read_matrix(path)
