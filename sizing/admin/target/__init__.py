"""The Target page: one question about one model, its answer, and what can be done with it."""

from sizing.admin.target.page import target_view

__all__ = ["target_view"]
