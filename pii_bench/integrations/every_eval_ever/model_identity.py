"""Who a system is to people who do not know this suite, as Every Eval Ever writes it.

An id is `developer/name`. What results put before the slash is a provider, and where a model runs
on a server of one's own no more than a protocol: that is no developer. Nothing is guessed; what
the results do not tell is `unknown` where a value is required, and else left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pii_bench.models.catalog import LOCAL, PROVIDERS, REPLAY
from pii_bench.models.table import find_card
from pii_bench.systems.base import GOLD, THIS_MACHINE

if TYPE_CHECKING:
    from pii_bench.systems.base import SystemCard

PROJECT: Final = "pii_bench"
UNKNOWN: Final = "unknown"

_TAGGERS: Final = frozenset({"bilstm-crf", "bilstm-crf-words"})


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """One model.

    Attributes:
        id: `developer/name`; more slashes may follow.
        name: as results have it.
        deployment: `self_deployed`, `externally_managed` or `unknown`.
        availability: `open_weights` or `unknown`: no result tells that weights are closed.
        platform: the provider that was called; None where none was, or it is unknown.
        engine: name and version of the runtime on this machine; None where unknown.
    """

    id: str
    name: str
    deployment: str = UNKNOWN
    availability: str = UNKNOWN
    platform: str | None = None
    engine: tuple[str, str] | None = None

    @property
    def developer(self) -> str:
        """The part of the id before its first slash."""
        return self.id.partition("/")[0]

    def document(self) -> dict[str, Any]:
        """The object `model_info`."""
        document: dict[str, Any] = {"name": self.name, "id": self.id}
        if self.developer != UNKNOWN:
            document["developer"] = self.developer
        if self.platform is not None:
            document["inference_platform"] = self.platform
        if self.engine is not None:
            name, version = self.engine
            document["inference_engine"] = {"name": name, "version": version}
        document["additional_details"] = {
            "deployment_type": self.deployment,
            "model_availability": self.availability,
        }
        return document


def identify(card: SystemCard) -> ModelIdentity:
    """Read from a system's card who its model is."""
    provider, slash, name = card.model.partition("/")
    here = "self_deployed" if card.unmasked_text_to == THIS_MACHINE else UNKNOWN
    if not slash:
        developer = PROJECT if card.model in _TAGGERS | {GOLD} else UNKNOWN
        opened = "open_weights" if card.model in _TAGGERS else UNKNOWN
        return ModelIdentity(f"{developer}/{card.model}", card.model, here, opened)
    if provider == REPLAY:
        # Whose answers the file holds, and where they were made, is unknown.
        return ModelIdentity(f"{UNKNOWN}/{name}", card.model)
    if provider == LOCAL:
        return _local(card, name, here)
    if provider not in PROVIDERS:
        return ModelIdentity(card.model, card.model, here)
    if card.settings.get("endpoint") == PROVIDERS[provider].base_url:
        return ModelIdentity(card.model, card.model, "externally_managed", platform=provider)
    # `@host` is behind the names of models on other servers.
    return _elsewhere(card, provider, name.rpartition("@")[0] or name, here)


def _local(card: SystemCard, name: str, here: str) -> ModelIdentity:
    from pii_bench.models.local import WEIGHTS

    # A file of the user's may have the name of the packaged weights.
    packaged = name in WEIGHTS and card.settings.get("weights") == f"sha256:{WEIGHTS[name].sha256}"
    engine, _, version = str(card.settings.get("runtime", "")).partition(" ")
    return ModelIdentity(
        f"{UNKNOWN}/{name}",
        card.model,
        here,
        "open_weights" if packaged else UNKNOWN,
        engine=(engine, version) if version else None,
    )


def _elsewhere(card: SystemCard, provider: str, name: str, here: str) -> ModelIdentity:
    known = find_card(provider, name)
    opened = "open_weights" if known is not None and known.needs_base_url else UNKNOWN
    # Servers of one's own take the names of Hugging Face, which begin with the developer.
    full_name = name if "/" in name else f"{UNKNOWN}/{name}"
    return ModelIdentity(full_name, card.model, here, opened)
