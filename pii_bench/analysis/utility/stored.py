"""Where answers and verdicts are kept, and which of them answer what would be asked today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from pii_bench.analysis.utility.chats import ANSWER, JUDGE, TEXTS, request_hash
from pii_bench.errors import InputFileError
from pii_bench.runs.manifest import Manifest, read_manifest
from pii_bench.runs.records import Failure, RunRecord
from pii_bench.runs.store import LINE_REMEDY, MANIFEST_REMEDY, RunFiles, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pii_bench.analysis.utility.chats import Questions
    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Response

FOLDER: Final = "utility"
"""The folder of results that everything here is in; runs of systems are not."""

# No name of a dataset holds it.
_UNDER: Final = "@"


def run_name(dataset: str, condition: str) -> str:
    """How the runs about a dataset under a condition are named."""
    return f"{dataset}{_UNDER}{condition}"


def split_name(run: str) -> tuple[str, str]:
    """Dataset and condition of a run's name."""
    dataset, _, condition = run.partition(_UNDER)
    return dataset, condition


def answers_folder(results: Path) -> Path:
    """`<results>/utility/answers`, with a folder per answerer."""
    return results / FOLDER / "answers"


def verdicts_folder(results: Path, answerer: str) -> Path:
    """`<results>/utility/verdicts/<answerer>`, with a folder per judge."""
    return RunFiles.at(results / FOLDER / "verdicts", answerer, JUDGE, "").model_folder


def texts_folder(results: Path) -> Path:
    """`<results>/utility/texts`, with a folder per judge of texts."""
    return results / FOLDER / "texts"


@dataclass(frozen=True, slots=True)
class StoredChat:
    """A run of an answerer or a judge, read back.

    Attributes:
        records: by sample id.
        unreadable: lines that cannot be read, by file, line and reason.
    """

    manifest: Manifest
    records: Mapping[str, RunRecord]
    unreadable: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Self:
        """The run of a manifest.

        Raises:
            InputFileError: the manifest is broken.
        """
        unreadable: list[str] = []
        lines = read_lines(RunFiles.of_manifest(path).responses, unreadable)
        by_id = {record.id: record for _, record in lines}
        return cls(read_manifest(path), by_id, tuple(unreadable))

    @property
    def returned(self) -> frozenset[str]:
        """The models that the provider said it used."""
        completions = (each for record in self.records.values() for each in record.completions)
        return frozenset(each.model for each in completions if each.model)

    def responses(
        self, questions: Questions, samples: Iterable[Sample]
    ) -> dict[str, Response | None]:
        """What came for samples, by id, as far as today's questions were asked.

        Returns:
            None for a call that failed; samples about which there is nothing to ask, or
            something else was asked, are absent.
        """
        card = self.manifest.system
        found: dict[str, Response | None] = {}
        for sample in samples:
            record = self.records.get(sample.id) if sample.id in questions.about else None
            if record and record.request == request_hash(card, questions.messages(sample)):
                response = record.response
                found[sample.id] = None if isinstance(response, Failure) else response
        return found


def read_answerers(results: Path, left_out: list[str]) -> list[StoredChat]:
    """All runs of answerers, by answerer and name.

    Args:
        results: the folder.
        left_out: is told of runs and lines that cannot be read, each with the reason.
    """
    return _read_all(answers_folder(results).glob(f"*/{ANSWER}/*.run.json"), left_out)


def read_judges(results: Path, answerer: str, run: str, left_out: list[str]) -> list[StoredChat]:
    """The runs of all judges about one run of an answerer, by judge; `left_out` as above."""
    folder = verdicts_folder(results, answerer)
    name = RunFiles.at(folder, "", JUDGE, run).manifest.name
    return _read_all(folder.glob(f"*/{JUDGE}/{name}"), left_out)


def read_text_judges(results: Path, left_out: list[str]) -> list[StoredChat]:
    """All runs of judges of texts, by judge and name; `left_out` as above."""
    return _read_all(texts_folder(results).glob(f"*/{TEXTS}/*.run.json"), left_out)


def _read_all(manifests: Iterable[Path], left_out: list[str]) -> list[StoredChat]:
    found = []
    for path in sorted(manifests):
        try:
            found.append(StoredChat.read(path))
        except InputFileError as error:
            left_out.append(f"{error}; {MANIFEST_REMEDY}")
        else:
            left_out += [f"{line}; {LINE_REMEDY}" for line in found[-1].unreadable]
    return found
