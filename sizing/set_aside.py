"""A large inventory is set aside from the garbage collector: it lives for as long as its process.

A full collection walks every object that is alive, with all threads standing still: a quarter of a second
at ten thousand nodes, and one comes every few seconds of work. What is frozen is not walked. It is freed as
ever when nobody refers to it; only cycles among it wait for the next time (see `gc.freeze`).
"""

import gc

ROWS_WORTH_IT = 5_000
"""Below it a collection takes less than a request."""


def set_aside(rows: int) -> None:
    """Keep all that is alive now out of later collections, where as many rows as these were just read."""
    if rows >= ROWS_WORTH_IT:
        gc.unfreeze()
        gc.collect()  # nothing that is garbage already may be kept
        gc.freeze()
