"""The log by which every process knows whether its snapshot is current."""

from __future__ import annotations

from django.db import models

ROWS_KEPT = 50_000


class InventoryChange(models.Model):
    """One change to a table that answers depend on, written by the database's own triggers.

    The newest row is the inventory revision: its `id` grows in the order of commits, since a writer
    holds a lock from its first change to its commit (SQLite: the one write lock; PostgreSQL: an
    advisory lock). `nonce` is random, so that a restored backup never repeats a revision.
    """

    class Kind(models.TextChoices):
        NODE = "node"
        REPLICA = "replica"
        CATALOG = "catalog"
        ALL = "all"
        NONE = "none"

    kind = models.CharField(max_length=8, choices=Kind)
    row = models.BigIntegerField()
    nonce = models.BigIntegerField()

    class Meta:
        ordering = ["id"]

    @classmethod
    def prune(cls, keep: int = ROWS_KEPT) -> int:
        """Remove all but the newest rows; a process whose snapshot is older reads everything anew."""
        newest = cls.objects.order_by("-id").values_list("id", flat=True).first()
        if newest is None:
            return 0
        removed, _ = cls.objects.filter(id__lte=newest - keep).delete()
        return removed

    def __str__(self) -> str:
        return f"{self.id}: {self.kind} {self.row}"
