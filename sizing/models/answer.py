"""Answers that were given, each with all that it takes to compute it again."""

from __future__ import annotations

import uuid
from decimal import Decimal

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.fields.json import KeyTransform

from sizing.models.fields import NAME_LENGTH
from sizing.models.measurement import Measurement

LONGEST_NUMBER = 100
"""Characters of a number as it was asked; what people may type has at most 64."""


class KeptInventory(models.Model):
    """Catalog and fleet as they were at one revision: a document of its own, or what differs from a base.

    A base is never itself a difference, so that reading one takes two rows at most.
    """

    revision = models.BigIntegerField(help_text="Newest row of the change log when it was read.")
    nonce = models.BigIntegerField(help_text="Of that row: no other history has it.")
    taken_at = models.DateTimeField(auto_now_add=True)
    base = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="differences"
    )
    body = models.BinaryField(help_text="JSON, compressed by zlib.")

    class Meta:
        ordering = ["id"]
        default_permissions = ()
        verbose_name_plural = "kept inventories"
        constraints = [
            models.UniqueConstraint(fields=["revision", "nonce"], name="kept_inventory_once"),
        ]

    def __str__(self) -> str:
        return f"inventory at {self.revision}"


class AnswerQuerySet(models.QuerySet["Answer"]):
    """Answers, of which some have victims by the thousand."""

    def in_short(self) -> AnswerQuerySet:
        """For lists: of the results only these figures, so that the results stay in the database."""
        figures = ("needed", "current", "more", "surplus", "room", "free_room")
        return self.defer("result", "measured").annotate(
            **{name: KeyTransform(name, "result") for name in figures}
        )


class Answer(models.Model):
    """A target that somebody asked, and the answer. Nobody adds, changes or deletes one by hand.

    Names stand as text, for an answer outlives users, models and measurements. Numbers stand as they were
    asked: a column of six places would be another question.
    """

    class Channel(models.TextChoices):
        PAGE = "page"
        API = "api", "API"
        COMMAND = "command"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    asked_at = models.DateTimeField()
    channel = models.CharField(max_length=7, choices=Channel, help_text="By which way it was asked.")
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    asked_by_name = models.CharField(
        max_length=150, blank=True, default="", help_text="Empty: a command, which has no account."
    )

    model = models.CharField(max_length=NAME_LENGTH)
    profile = models.CharField(max_length=NAME_LENGTH, blank=True, default="", help_text="Empty: none named.")
    variant = models.CharField(max_length=NAME_LENGTH, blank=True, default="", help_text="Empty: none named.")
    tokens_per_sec = models.CharField(max_length=LONGEST_NUMBER, verbose_name="tokens/s")
    utilization = models.CharField(max_length=LONGEST_NUMBER, default="1")
    as_if = models.JSONField(default=list, blank=True, help_text="What was supposed, in order.")
    asked_key = models.CharField(
        max_length=64, help_text="Digest of who asks what by which way; alike for the polls of one question."
    )

    revision = models.BigIntegerField(null=True, blank=True, help_text="Revision of the inventory.")
    nonce = models.BigIntegerField(null=True, blank=True)
    inventory = models.ForeignKey(
        KeptInventory, null=True, blank=True, on_delete=models.PROTECT, related_name="answers"
    )
    measurement = models.ForeignKey(
        Measurement, null=True, blank=True, on_delete=models.SET_NULL, related_name="answers"
    )
    measured = models.JSONField(help_text="The figures of that measurement, as they were.")

    fits = models.BooleanField()
    result = models.JSONField(help_text="The answer in its public form, without ages and without nodes.")
    digest = models.CharField(max_length=64, help_text="Of the result.")

    objects = AnswerQuerySet.as_manager()

    class Meta:
        ordering = ["-asked_at", "-id"]
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["-asked_at", "-id"], name="answer_by_time"),
            models.Index(fields=["model", "-asked_at"], name="answer_by_model"),
            models.Index(fields=["asked_key", "-asked_at"], name="answer_by_key"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(channel__in=["page", "api", "command"]), name="answer_channel_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} at {Decimal(self.tokens_per_sec):,f} tok/s"
