from __future__ import annotations

from pii_bench.models.base import Sampling
from pii_bench.models.calls import CallPolicy
from pii_bench.prompting.strategies import get_strategy, load_prompt
from pii_bench.runs.jobs import ledger_of
from pii_bench.systems.plug_ins import plug_ins
from pii_bench.systems.prompted import PromptedSystem
from tests.fakes import FakeModel, fake_system


def test_the_ledger_of_a_plug_in_is_that_of_its_model() -> None:
    model = CallPolicy().guard(FakeModel(), None)

    (system,) = plug_ins([PromptedSystem(model, load_prompt(get_strategy("naive")), Sampling())])

    assert ledger_of(system) is model.ledger


def test_a_system_that_makes_no_calls_has_no_ledger() -> None:
    assert ledger_of(fake_system(FakeModel())) is None
