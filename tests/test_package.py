from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.catalog import DATASETS
from pii_bench.files import sha256_of
from pii_bench.prompting.strategies import DETECTION, STRATEGIES, load_prompt
from pii_bench.ranking.external import published_rows
from pii_bench.systems.relevance.base import read_thresholds
from tests.cli.command import run_python
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

# Everything that the package reads from its own files, and where it finds them.
_LOAD = """
import json
from pathlib import Path
import pii_bench
from pii_bench import files
from pii_bench.datasets.catalog import DATASETS, load_dataset
from pii_bench.ranking.external import PUBLISHED, published_rows
from pii_bench.prompting.strategies import DETECTION, STRATEGIES, load_prompt

package = Path(pii_bench.__file__).parent
from pii_bench.systems.relevance.base import read_thresholds
from pii_bench.systems.catalog import SystemOptions, build_systems

print(json.dumps({
    "systems": [
        system.card.model
        for name in ("encoder", "bilstm-crf+embedding", "bilstm-crf-words")
        for system in build_systems(name, SystemOptions())
    ],
    "thresholds": read_thresholds(),
    "package": str(package),
    "typed": (package / "py.typed").is_file(),
    "folders": [str(files.DATA), str(files.PROMPTS), str(PUBLISHED)],
    "prompts": {s.name: load_prompt(s).sha256 for s in [DETECTION, *STRATEGIES.values()]},
    "sets": {name: load_dataset(name).sha256 for name in DATASETS if DATASETS[name].path.exists()},
    "published": len(published_rows()),
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of this checkout in it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ("-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder))
    run_python(*build, cwd=REPOSITORY)
    (wheel,) = folder.glob("*.whl")
    target = folder / "installed"
    install = ("--no-deps", "--no-index", "--target", str(target))
    run_python("-m", "pip", "install", "--quiet", *install, str(wheel), cwd=folder)
    return target


@pytest.fixture(scope="module")
def loaded(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        run_python("-c", _LOAD, cwd=tmp_path_factory.mktemp("elsewhere"), PYTHONPATH=str(installed))
    )
    return found


def test_an_installed_package_finds_its_files_inside_itself(
    installed: Path, loaded: dict[str, Any]
) -> None:
    assert loaded["package"] == str(installed / "pii_bench")
    assert loaded["typed"]
    assert all(folder.startswith(loaded["package"]) for folder in loaded["folders"])


def test_an_installed_package_has_the_prompts_and_data_of_the_checkout(
    loaded: dict[str, Any],
) -> None:
    ours = [DETECTION, *STRATEGIES.values()]
    assert loaded["prompts"] == {strategy.name: load_prompt(strategy).sha256 for strategy in ours}
    assert loaded["sets"] == {name: sha256_of(entry.path) for name, entry in DATASETS.items()}
    assert loaded["published"] == len(published_rows())
    assert loaded["thresholds"] == read_thresholds()


def test_an_installed_package_has_the_weights_of_the_default_system(
    loaded: dict[str, Any], installed: Path
) -> None:
    assert loaded["systems"] == [
        *("encoder", "encoder"),
        *("bilstm-crf", "bilstm-crf", "bilstm-crf-words"),
    ]
    assert not list(installed.rglob("weights.safetensors"))


def test_an_installed_package_has_the_command(installed: Path, tmp_path: Path) -> None:
    (metadata,) = installed.glob("pii_bench-*.dist-info")

    assert "pii-bench = pii_bench.cli:main" in (metadata / "entry_points.txt").read_text()
    code = "from pii_bench.cli import main; main(['leaderboard'])"
    assert "published" in run_python("-c", code, cwd=tmp_path, PYTHONPATH=str(installed))


def test_tests_are_not_installed(installed: Path) -> None:
    assert {path.name.partition("-")[0] for path in installed.iterdir()} <= {"pii_bench", "bin"}
