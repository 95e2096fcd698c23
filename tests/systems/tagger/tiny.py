"""A tagger that a test trains in a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.systems.tagger.settings import Settings, Sizes
from pii_bench.systems.tagger.train import train
from tests.builders import sample_record, write_lines

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = Settings(
    learning_rate=0.02,
    batch=8,
    epochs=6,
    dropout=0.1,
    sizes=Sizes(word=8, shape=4, character=4, filters=6, hidden=10),
)

_FIRST_NAMES = ("Ann", "Bo", "Carla", "Dov", "Eka", "Femi", "Gül", "Hana")


def records(first_age: int) -> list[dict[str, object]]:
    """Eight people of ascending age."""
    made = []
    for age, name in enumerate(_FIRST_NAMES, first_age):
        entities = [
            {"text": f"{name} Lee", "type": "PER", "spans": [[0, len(name) + 4]]},
            {"text": str(age), "type": "DEM", "spans": [[len(name) + 8, len(name) + 10]]},
        ]
        made.append(
            sample_record(
                name,
                description=f"{name} Lee is {age}. So it goes.",
                subjects=[{"id": "A", "entities": entities}],
                related=[],
            )
        )
    return made


def train_tiny(folder: Path, settings: Settings = SETTINGS) -> Path:
    """Train on people of 20 to 59, stop by people of 60 to 67; return the folder of the files."""
    young = [
        record | {"id": f"{age}-{record['id']}"}
        for age in range(20, 60, 8)
        for record in records(age)
    ]
    train_path = write_lines(folder / "train.jsonl", young)
    dev_path = write_lines(folder / "dev.jsonl", records(60))
    train([train_path], [dev_path], folder / "model", lambda _: None, settings)
    return folder / "model"
