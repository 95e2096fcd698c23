"""Every test has a process of its own: a module is imported once."""

from __future__ import annotations

import subprocess
import sys

import pytest

ALONE = "from pii_bench.models.openai_import import import_client_alone; import_client_alone()"
COUNT = "sum(name.startswith('openai.types.') for name in sys.modules)"

# What a release of another build would do at the first import.
OTHER_BUILD = """
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "openai._client":
            sys.meta_path.remove(self)
            raise ImportError(name)

sys.meta_path.insert(0, Finder())
"""


def run(*lines: str) -> str:
    code = "\n".join(["import sys", *lines])
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_client_is_made_without_the_types_of_all_apis() -> None:
    counts = run(
        ALONE,
        "import openai",
        "made = openai.AsyncOpenAI(api_key='k', base_url='http://localhost')",
        f"print({COUNT})",
        "openai.OpenAI",
        f"print({COUNT})",
    )
    few, all_of_them = map(int, counts.split())
    assert few * 5 < all_of_them


def test_client_and_errors_stay_the_same_when_the_rest_is_run() -> None:
    same = run(
        ALONE,
        "import openai, openai._client",
        "client, error = openai.AsyncOpenAI, openai.APIStatusError",
        "print(error is openai._client._exceptions.APIStatusError)",
        "openai.OpenAI",
        "print(client is openai.AsyncOpenAI, error is openai.APIStatusError)",
        "print(hasattr(openai, 'no_such_name'))",
    )
    assert same.split() == ["True", "True", "True", "False"]


@pytest.mark.parametrize(
    "use",
    [
        "from openai.types.chat import ChatCompletion; from openai import OpenAI",
        "from openai.types import Batch; from openai import *",
        "from openai.lib import azure; import openai; OpenAI = openai.OpenAI",
    ],
)
def test_the_rest_is_there_for_who_asks(use: str) -> None:
    assert run(ALONE, use, "print(OpenAI.__name__)") == "OpenAI"


def test_an_sdk_that_is_imported_already_is_left_alone() -> None:
    assert run("import openai", ALONE, "print(type(openai).__name__)") == "module"


def test_a_release_of_another_build_is_imported_as_usual() -> None:
    assert run(OTHER_BUILD, ALONE, "import openai; print(openai.OpenAI.__name__)") == "OpenAI"
