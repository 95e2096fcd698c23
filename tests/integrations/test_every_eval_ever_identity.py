from __future__ import annotations

from typing import Any

import pytest

from pii_bench.integrations.every_eval_ever import ModelIdentity, identify
from pii_bench.models.local import WEIGHTS
from pii_bench.systems.base import THIS_MACHINE, SystemCard
from pii_bench.tasks import Task

SMOLLM2 = f"sha256:{WEIGHTS['smollm2-135m-instruct'].sha256}"


def card(model: str, to: str = THIS_MACHINE, **settings: Any) -> SystemCard:
    return SystemCard(model, "naive", "", Task.QUERY_RELATED, False, settings, unmasked_text_to=to)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(
            card("openai/gpt-5", "openai", endpoint="https://api.openai.com/v1"),
            ModelIdentity("openai/gpt-5", "openai/gpt-5", "externally_managed", platform="openai"),
            id="a provider's own endpoint",
        ),
        pytest.param(
            card("openai/tiny@127.0.0.1:8000", endpoint="http://127.0.0.1:8000/v1"),
            ModelIdentity("unknown/tiny", "openai/tiny@127.0.0.1:8000", "self_deployed"),
            id="the protocol of a server here is no developer",
        ),
        pytest.param(
            card("openai/acme/tiny@gpu.example", "openai (x)", endpoint="https://gpu.example/v1"),
            ModelIdentity("acme/tiny", "openai/acme/tiny@gpu.example"),
            id="a name of Hugging Face on a server elsewhere",
        ),
        pytest.param(
            card("openai/deepseek-ai/DeepSeek-V3@gpu", "openai (x)", endpoint="http://gpu"),
            ModelIdentity(
                "deepseek-ai/DeepSeek-V3",
                "openai/deepseek-ai/DeepSeek-V3@gpu",
                availability="open_weights",
            ),
            id="weights that the table of models knows as open",
        ),
        pytest.param(
            card("local/smollm2-135m-instruct", weights=SMOLLM2, runtime="xllamacpp 1.2"),
            ModelIdentity(
                "unknown/smollm2-135m-instruct",
                "local/smollm2-135m-instruct",
                "self_deployed",
                "open_weights",
                engine=("xllamacpp", "1.2"),
            ),
            id="the packaged model",
        ),
        pytest.param(
            card("local/smollm2-135m-instruct", weights="sha256:0", runtime="xllamacpp 1.2"),
            ModelIdentity(
                "unknown/smollm2-135m-instruct",
                "local/smollm2-135m-instruct",
                "self_deployed",
                engine=("xllamacpp", "1.2"),
            ),
            id="a file that only has its name",
        ),
        pytest.param(
            card("bilstm-crf"),
            ModelIdentity("pii_bench/bilstm-crf", "bilstm-crf", "self_deployed", "open_weights"),
            id="our tagger",
        ),
        pytest.param(
            card("presidio"),
            ModelIdentity("unknown/presidio", "presidio", "self_deployed"),
            id="a detector of others",
        ),
        pytest.param(
            card("replay/answers"),
            ModelIdentity("unknown/answers", "replay/answers"),
            id="a replay",
        ),
        pytest.param(
            card("acme/masker", "unknown"),
            ModelIdentity("acme/masker", "acme/masker"),
            id="a plug-in",
        ),
    ],
)
def test_nothing_is_said_of_a_model_that_its_card_does_not_tell(
    told: SystemCard, expected: ModelIdentity
) -> None:
    assert identify(told) == expected


def test_what_is_unknown_is_left_out_of_the_document_where_it_may_be() -> None:
    assert ModelIdentity("unknown/presidio", "presidio").document() == {
        "name": "presidio",
        "id": "unknown/presidio",
        "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
    }


def test_what_is_known_stands_in_the_document() -> None:
    known = ModelIdentity(
        "acme/tiny", "tiny", "self_deployed", "open_weights", "acme", ("engine", "1.2")
    )

    assert known.document() == {
        "name": "tiny",
        "id": "acme/tiny",
        "developer": "acme",
        "inference_platform": "acme",
        "inference_engine": {"name": "engine", "version": "1.2"},
        "additional_details": {
            "deployment_type": "self_deployed",
            "model_availability": "open_weights",
        },
    }
