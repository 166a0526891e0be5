"""How long the sync waits for what, in seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """What it waits for in production; tests wait less."""

    run: float = 540.0
    """A run then ends and the next begins with a fresh list, so that nothing drifts."""
    lease: float = 120.0
    """A run without a sign of life for so long has lost its worker. Longer than bringing in a list takes."""
    beat: float = 15.0
    look: float = 1.0
    """How often it asks whether it still has the lease, and whether somebody wants a fresh list."""
    tick: float = 0.2
    connect: float = 10.0
    answer: float = 60.0
    """The longest silence within the answer to a list."""
    begin: float = 20.0
    """How long a watch may take until its answer begins; the API server begins it at once."""
    watch: int = 290
    """The API server is asked to end a watch after this; it sends a bookmark about once a minute."""
    silence: float = 305.0
    """The longest silence of a watch."""
    debounce: float = 1.0
    """Changes are gathered for so long after the first."""
    settle: float = 2.0
    """A watch that lasted for so long without an error works."""
    first_pause: float = 1.0
    longest_pause: float = 60.0

    def pause(self, failures: int) -> float:
        """The wait after so many failures in a row: 1 s, 2 s, 4 s and so on."""
        return float(min(self.longest_pause, self.first_pause * 2.0 ** min(max(failures, 1) - 1, 10)))


IN_PRODUCTION = Timing()
