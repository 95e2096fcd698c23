"""What the adapters of HTTP services have in common: their names and the endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class ServiceModel:
    """The part of a `Model` behind an endpoint that no protocol changes.

    Args:
        provider: names the protocol's speaker in results.
        model: its name as the service knows it.
        name: how results name it; None for `provider/model`.
        endpoint: the base URL in the form that results name.
    """

    def __init__(self, provider: str, model: str, name: str | None, endpoint: str) -> None:
        self._model = model
        self._name = name or f"{provider}/{model}"
        self._endpoint = endpoint

    @property
    def name(self) -> str:
        """`provider/model`, or the name that was given."""
        return self._name

    @property
    def identity(self) -> Mapping[str, str]:
        """The endpoint."""
        return {"endpoint": self._endpoint}

    @property
    def endpoint(self) -> str:
        """The base URL."""
        return self._endpoint

    @property
    def model(self) -> str:
        """The model's name as the service knows it."""
        return self._model
