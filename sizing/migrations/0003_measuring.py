"""How a measurement was taken: its levels, its run, the nodes that are measured now, the schedule.

The triggers of the change log are made anew, since SQLite loses those of a table that gets a column.
"""

import django.db.models.deletion
from django.db import migrations, models

from sizing.models import triggers


class Migration(migrations.Migration):
    dependencies = [
        ("sizing", "0002_change_log"),
    ]

    operations = [
        migrations.RunPython(triggers.drop, triggers.create),
        migrations.AddField(
            model_name="measurement",
            name="bracket",
            field=models.CharField(
                blank=True,
                default="",
                editable=False,
                help_text="The figure and the next level tried, in words.",
                max_length=255,
            ),
        ),
        migrations.AddField(
            model_name="measurement",
            name="generator",
            field=models.CharField(
                blank=True,
                default="",
                editable=False,
                help_text="What made the load, and its version.",
                max_length=255,
            ),
        ),
        migrations.AddField(
            model_name="measurement",
            name="gpu_type",
            field=models.CharField(
                blank=True,
                default="",
                editable=False,
                help_text="What the measured replica ran on.",
                max_length=255,
            ),
        ),
        migrations.AddField(
            model_name="measurement",
            name="refresh",
            field=models.OneToOneField(
                blank=True,
                editable=False,
                help_text="The run that took it.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="measurement",
                to="sizing.refresh",
            ),
        ),
        migrations.AddField(
            model_name="measurement",
            name="replica_name",
            field=models.CharField(blank=True, default="", editable=False, max_length=255),
        ),
        migrations.AddField(
            model_name="measurement",
            name="variant_shape",
            field=models.CharField(
                blank=True,
                default="",
                editable=False,
                help_text="The variant as it was measured.",
                max_length=255,
            ),
        ),
        migrations.AddField(
            model_name="measurement",
            name="workload",
            field=models.JSONField(
                blank=True, default=dict, editable=False, help_text="Shape, arrival and seed of the requests."
            ),
        ),
        migrations.AddField(
            model_name="refresh",
            name="live",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="The level that is being measured: load, requests, tok/s so far.",
            ),
        ),
        migrations.AddField(
            model_name="refresh",
            name="options",
            field=models.JSONField(
                blank=True, default=dict, help_text="What was asked otherwise than the desk's settings."
            ),
        ),
        migrations.AddField(
            model_name="refresh",
            name="save_result",
            field=models.BooleanField(default=True, help_text="Off: measured to look at, not stored."),
        ),
        migrations.AddField(
            model_name="variant",
            name="engine_seen",
            field=models.CharField(
                blank=True,
                default="",
                editable=False,
                help_text="The engine and version that its replicas last said to run.",
                max_length=255,
            ),
        ),
        migrations.CreateModel(
            name="MeasuredNode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "node",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="measured_by",
                        to="sizing.node",
                    ),
                ),
                (
                    "refresh",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="measured_nodes",
                        to="sizing.refresh",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="BenchLevel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "position",
                    models.PositiveIntegerField(
                        help_text="In the order in which they were measured, from 1."
                    ),
                ),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("pass", "pass"),
                            ("fail", "fail"),
                            ("unknown", "unknown"),
                            ("invalid", "invalid"),
                        ],
                        max_length=7,
                    ),
                ),
                ("why", models.CharField(max_length=255)),
                ("observed", models.JSONField(help_text="What was observed, as `Level.as_dict` writes it.")),
                (
                    "measurement",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="levels",
                        to="sizing.measurement",
                    ),
                ),
                (
                    "refresh",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="levels",
                        to="sizing.refresh",
                    ),
                ),
            ],
            options={
                "ordering": ["position", "id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("refresh__isnull", True), ("measurement__isnull", True), _connector="XOR"
                        ),
                        name="level_has_one_owner",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("verdict__in", ["pass", "fail", "unknown", "invalid"])),
                        name="level_verdict_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RefreshPlan",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "next_refresh_at",
                    models.DateTimeField(blank=True, help_text="Empty: not by schedule.", null=True),
                ),
                (
                    "failures",
                    models.PositiveIntegerField(default=0, help_text="In a row; each makes the wait longer."),
                ),
                (
                    "profile",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="plans",
                        to="sizing.benchprofile",
                    ),
                ),
                (
                    "variant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="plans", to="sizing.variant"
                    ),
                ),
            ],
            options={
                "ordering": ["next_refresh_at", "id"],
                "indexes": [models.Index(fields=["next_refresh_at"], name="plan_due")],
                "constraints": [models.UniqueConstraint(fields=("variant", "profile"), name="plan_once")],
            },
        ),
        migrations.RunPython(triggers.create, triggers.drop),
    ]
