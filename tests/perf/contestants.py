"""Who is asked to make the same requests, and how."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import load_dataset
from pii_bench.prompting.strategies import get_strategy, load_prompt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_OURS: Final = "import sys; from pii_bench.cli import main; sys.exit(main())"

# A task of lm-evaluation-harness: our prompts as they are, one answer each.
_LM_EVAL_TASK: Final = """\
task: requests
dataset_path: json
dataset_kwargs:
  data_files:
    test: {requests}
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{target}}}}"
generation_kwargs:
  until: []
  do_sample: false
  temperature: 0.0
  max_gen_toks: 2048
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
"""


@dataclass(frozen=True, slots=True)
class Bench:
    """What a command is made from.

    Attributes:
        folder: for what the contestants write; emptied before each run.
        requests: the file of prompts, JSON Lines of `id`, `prompt` and `target`.
        base_url: of the server.
        peers: the interpreter of the environment in which the Python peers are installed.
        node_modules: the folder in which promptfoo and Node.js are installed.
    """

    folder: Path
    requests: Path
    base_url: str
    peers: Path
    node_modules: Path


@dataclass(frozen=True, slots=True)
class Contestant:
    """One program.

    Attributes:
        name: as the table names it.
        keeps: what is left of the answers when it ends.
        program: where it is.
        arguments: what it is told, for a number of calls at a time.
        environment: variables that it needs.
    """

    name: str
    keeps: str
    program: Callable[[Bench], Path]
    arguments: Callable[[Bench, int], list[str]]
    environment: Callable[[Bench], Mapping[str, str]] = field(default=lambda _: {})

    def command(self, bench: Bench, concurrency: int) -> list[str]:
        """Program and arguments."""
        return [str(self.program(bench)), *self.arguments(bench, concurrency)]


def write_requests(path: Path, limit: int) -> None:
    """Write what `pii-bench run` asks about the first samples of `single`, naively."""
    prompt = load_prompt(get_strategy("naive"))
    with path.open("w", encoding="utf-8") as file:
        for sample in load_dataset("single").samples[:limit]:
            [message] = prompt.messages(sample)
            related = json.dumps([entity.text for entity in sample.related])
            record = {"id": sample.id, "prompt": message.content, "target": related}
            file.write(json.dumps(record) + "\n")


def ours(bench: Bench, concurrency: int, *, limit: int = 1000) -> list[str]:
    """`pii-bench run`, as its user runs it, but for the program."""
    return [
        *("-c", _OURS, "run", "--model", "openai/x", "--base-url", bench.base_url),
        *("--task", "query-related", "--strategy", "naive", "--dataset", "single"),
        *("--limit", str(limit), "--concurrency", str(concurrency)),
        *("--results", str(bench.folder / "results")),
    ]


def _python(_: Bench) -> Path:
    return Path(sys.executable)


def _bare(bench: Bench, concurrency: int) -> list[str]:
    return ["-m", "tests.perf.bare_loop", str(bench.requests), bench.base_url, str(concurrency)]


def _promptfoo(bench: Bench, concurrency: int) -> list[str]:
    requests = map(json.loads, bench.requests.read_text(encoding="utf-8").splitlines())
    settings = {
        "apiBaseUrl": bench.base_url,
        "apiKey": "none",
        "temperature": 0,
        "max_tokens": 2048,
    }
    told = {
        "prompts": ["{{prompt}}"],
        "providers": [{"id": "openai:chat:x", "config": settings}],
        "tests": [
            {
                "vars": {"prompt": request["prompt"]},
                "assert": [{"type": "contains", "value": request["target"]}],
            }
            for request in requests
        ],
    }
    config = bench.folder / "promptfooconfig.json"
    config.write_text(json.dumps(told), encoding="utf-8")
    return [
        *("eval", "--config", str(config), "--max-concurrency", str(concurrency)),
        *("--no-cache", "--no-table", "--no-progress-bar"),
        *("--output", str(bench.folder / "promptfoo.json")),
    ]


def _lm_eval(bench: Bench, concurrency: int) -> list[str]:
    tasks = bench.folder / "tasks"
    tasks.mkdir()
    (tasks / "requests.yaml").write_text(_LM_EVAL_TASK.format(requests=bench.requests))
    url = f"{bench.base_url}/chat/completions"
    settings = f"model=x,base_url={url},num_concurrent={concurrency},max_retries=1"
    return [
        *("run", "--model", "local-chat-completions", "--model_args", settings),
        *("--apply_chat_template", "--tasks", "requests", "--include_path", str(tasks)),
        *("--log_samples", "--output_path", str(bench.folder / "lm-eval")),
    ]


def _inspect(bench: Bench, concurrency: int) -> list[str]:
    return [
        *("eval", "tests/perf/inspect_task.py", "--model", "openai-api/local/x"),
        *("--max-connections", str(concurrency)),
        *("--display", "none", "--log-dir", str(bench.folder / "inspect")),
    ]


BARE: Final = Contestant("bare `AsyncOpenAI` loop", "nothing", _python, _bare)
"""What the others are compared with."""

OURS: Final = Contestant("pii_bench", "every answer as it comes, scored", _python, ours)

CONTESTANTS: Final = (
    BARE,
    OURS,
    Contestant(
        "promptfoo",
        "all answers, scored",
        lambda bench: bench.node_modules / ".bin" / "promptfoo",
        _promptfoo,
        lambda bench: {
            "PATH": f"{bench.node_modules / 'node' / 'bin'}:{os.environ['PATH']}",
            "PROMPTFOO_CONFIG_DIR": str(bench.folder / "promptfoo"),
            "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
            "PROMPTFOO_DISABLE_TELEMETRY": "1",
            "PROMPTFOO_DISABLE_UPDATE": "1",
            "PROMPTFOO_FAILED_TEST_EXIT_CODE": "0",
        },
    ),
    Contestant(
        "lm-evaluation-harness",
        "all answers at the end, scored",
        lambda bench: bench.peers.with_name("lm-eval"),
        _lm_eval,
        lambda bench: {
            "OPENAI_API_KEY": "none",
            "HF_HOME": str(bench.folder / "hf"),
            "HF_HUB_OFFLINE": "1",
        },
    ),
    Contestant(
        "Inspect AI",
        "every answer with its events, scored",
        lambda bench: bench.peers.with_name("inspect"),
        _inspect,
        lambda bench: {
            "LOCAL_BASE_URL": bench.base_url,
            "LOCAL_API_KEY": "none",
            "PERF_REQUESTS": str(bench.requests),
        },
    ),
)
