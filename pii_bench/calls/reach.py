"""Whether anybody is at the endpoint: a run that reaches nobody ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import SKIPPED_BUDGET

if TYPE_CHECKING:
    from pii_bench.models.base import CallError


@dataclass(slots=True)
class Reach:
    """Counts calls in a row that found no connection, each after all its attempts.

    Without it a run against a server that is down would wait for hours, call by call.

    Attributes:
        most: so many end the run, at least 1.
    """

    most: int = 3
    _lost: int = field(default=0, init=False)

    def heard(self) -> None:
        """Somebody answered, be it with a refusal."""
        self._lost = 0

    def failed(self, error: CallError, endpoint: str | None) -> None:
        """A call has failed for good.

        Args:
            error: its last attempt's.
            endpoint: the base URL; None on this machine.

        Raises:
            ProviderRefusedError: there was no connection, as for the calls before it.
        """
        if error.kind == SKIPPED_BUDGET:
            return
        if error.kind != "connection":
            self.heard()
            return
        self._lost += 1
        if self._lost >= self.most:
            raise ProviderRefusedError(
                f"no connection to {endpoint or 'the model'} in {self._lost} calls in a row: check "
                "that it is up and that the base URL is right, then run again to go on"
            )
