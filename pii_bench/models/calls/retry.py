"""Whether a failed call is tried again and when, and when a run gives up."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import SKIPPED_BUDGET, TRANSIENT, CallError

LONGEST_WAIT: Final = 120.0
"""Seconds that a server may ask to wait; a call is not made after a longer wait, but fails."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Bounded attempts with exponential backoff and full jitter.

    The wait before attempt n + 1 is drawn evenly from 0 to `first_wait` * 2 ** (n - 1),
    at most `longest_wait`. Where the server says how long to wait, the draw comes on top.
    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.

    Attributes:
        attempts: calls for one request in all, at least 1.
        first_wait: seconds, the longest first wait.
        longest_wait: seconds.
        random: where the jitter comes from.
    """

    attempts: int = 5
    first_wait: float = 2.0
    longest_wait: float = 60.0
    random: Random = field(default_factory=Random)

    def decide(self, attempt: int, error: CallError) -> float | CallError:
        """What follows on a failed attempt.

        Args:
            attempt: its number, from 1.
            error: how it failed.

        Returns:
            Seconds to wait before the next attempt, or the error that ends the call.
        """
        if error.kind not in TRANSIENT:
            return error
        asked = error.retry_after or 0.0
        if asked > LONGEST_WAIT:
            why = f"the server asks to wait {asked:.0f} s, longer than {LONGEST_WAIT:.0f} s"
            return CallError(error.kind, _join(error.detail, why), retry_after=asked)
        if attempt >= self.attempts:
            return CallError(error.kind, _join(error.detail, f"{attempt} attempts"))
        backoff = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1))
        return asked + self.random.uniform(0.0, backoff)


def _join(detail: str, more: str) -> str:
    return f"{detail}; {more}" if detail else more


@dataclass(slots=True)
class Reach:
    """Counts calls in a row that found no connection, each after all its attempts.

    Without it a run against a server that is down would wait for hours, call by call.

    Attributes:
        most: so many end the run, at least 1.
        patience: seconds without any connection that end it too, however few calls there were.
    """

    most: int = 3
    patience: float = 30.0
    _lost: int = field(default=0, init=False)
    _since: float | None = field(default=None, init=False)

    def heard(self) -> None:
        """Somebody answered, be it with a refusal."""
        self._lost, self._since = 0, None

    def attempted(self, error: CallError, endpoint: str | None, now: float) -> None:
        """An attempt has failed.

        Args:
            error: how.
            endpoint: the base URL; None on this machine.
            now: seconds of a clock that only goes on.

        Raises:
            ProviderRefusedError: there was no connection, and has been none for long.
        """
        if error.kind == SKIPPED_BUDGET:
            return
        if error.kind != "connection":
            self.heard()
            return
        if self._since is None:
            self._since = now
        if now - self._since >= self.patience:
            raise self._unreachable(endpoint, f"for {now - self._since:.0f} s")

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
            raise self._unreachable(endpoint, f"in {self._lost} calls in a row")

    @staticmethod
    def _unreachable(endpoint: str | None, when: str) -> ProviderRefusedError:
        return ProviderRefusedError(
            f"no connection to {endpoint or 'the model'} {when}: check that it is up and that the "
            "base URL is right, then run again to go on"
        )
