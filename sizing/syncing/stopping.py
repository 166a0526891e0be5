"""A worker's wish to end, seen by its task in whichever process or thread that runs."""

from __future__ import annotations

import multiprocessing

stopping = multiprocessing.get_context("fork").Event()
"""Made before the worker's pool is, whose processes then share it."""
