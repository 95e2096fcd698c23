from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from pii_bench.errors import PiiBenchError
from pii_bench.systems.base import SystemCard, require_local
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.prompted import DrawnSystem
from pii_bench.tasks import Task
from tests.fakes import FakeModel, fake_system

CARD = SystemCard("mine", "system", "", Task.DETECTION, oracle=False, settings={})


@pytest.mark.parametrize(
    "endpoint",
    [None, "http://localhost:8000/v1", "http://127.0.0.1:11434/v1", "http://[::1]:8080/v1"],
)
def test_a_model_on_this_machine_is_local(endpoint: str | None) -> None:
    system = fake_system(FakeModel(endpoint=endpoint))

    require_local([system, DrawnSystem(system, "votes", 3)])


@pytest.mark.parametrize("name", ["gold+gold", "bilstm-crf+keyword"])
def test_systems_without_a_chat_model_are_local(name: str) -> None:
    require_local(build_systems(name, SystemOptions()))


@pytest.mark.parametrize(
    "endpoint",
    ["https://api.openai.com/v1", "http://192.168.0.2:8000/v1", "http://localhost.example.org/v1"],
)
def test_a_model_on_another_machine_is_refused(endpoint: str) -> None:
    away = fake_system(FakeModel(name="openai/m", endpoint=endpoint))
    message = (
        "--local-only: system 'openai/m' (naive) sends unmasked text to "
        f"openai ({endpoint}), which is not this machine"
    )

    for systems in ([away], [fake_system(FakeModel()), away], [DrawnSystem(away, "votes", 3)]):
        with pytest.raises(PiiBenchError, match=f"^{re.escape(message)}$"):
            require_local(systems)


def test_a_card_without_a_recipient_is_refused_with_a_hint() -> None:
    message = (
        "--local-only: system 'mine' (system) does not say where it sends unmasked text; "
        "if nowhere, set its card's unmasked_text_to to 'this machine'"
    )

    with pytest.raises(PiiBenchError, match=f"^{re.escape(message)}$"):
        require_local([SimpleNamespace(card=CARD)])
