"""A node's zone, out of its labels, as databases index it."""

from __future__ import annotations

from typing import Any

from django.db.models import Func, TextField

from sizing.domain.picture import ZONE_LABEL


class Zone(Func):
    """The zone that a column of labels names, NULL without one: `Zone("labels")`.

    The label stands in the SQL as it does in the index, and not as a parameter: else no index is used.
    """

    output_field = TextField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return super().as_sql(
            compiler, connection, template=f"JSON_EXTRACT(%(expressions)s, '$.\"{ZONE_LABEL}\"')", **context
        )

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return super().as_sql(
            compiler, connection, template=f"(%(expressions)s ->> '{ZONE_LABEL}')", **context
        )
