"""Inventory files that people bring, and the indexes that long lists are read by."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import sizing.models.fields
import sizing.models.zone


class Migration(migrations.Migration):
    dependencies = [
        ("sizing", "0005_kubernetes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="InventoryLoad",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="The file as it was named.",
                        max_length=255,
                        validators=[sizing.models.fields.validate_text],
                    ),
                ),
                ("size", models.PositiveBigIntegerField(default=0, help_text="Bytes as it came.")),
                ("body", models.BinaryField(blank=True, null=True)),
                ("replace", models.BooleanField(default=False, help_text="Remove what the file leaves out.")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("preview", "looked at, not loaded"),
                            ("loaded", "Loaded"),
                            ("refused", "Refused"),
                        ],
                        default="preview",
                        max_length=7,
                    ),
                ),
                (
                    "trigger",
                    models.CharField(
                        choices=[("admin", "Admin"), ("api", "API"), ("command", "Command")], max_length=7
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "counts",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="Objects created, updated, removed and unchanged, by kind.",
                    ),
                ),
                (
                    "changes",
                    models.JSONField(
                        blank=True, default=dict, help_text="What the load changes or has changed, by name."
                    ),
                ),
                ("warnings", models.JSONField(blank=True, default=list)),
                (
                    "errors",
                    models.JSONField(blank=True, default=dict, help_text="By path; what has any is refused."),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name": "inventory load",
                "ordering": ["-created_at", "-id"],
            },
        ),
        migrations.AddIndex(
            model_name="inventoryload",
            index=models.Index(fields=["-created_at", "-id"], name="inventory_load_by_time"),
        ),
        migrations.AddIndex(
            model_name="benchimport",
            index=models.Index(fields=["-queued_at", "-id"], name="bench_import_by_time"),
        ),
        migrations.AddIndex(
            model_name="clusterimport",
            index=models.Index(fields=["-queued_at", "-id"], name="cluster_import_by_time"),
        ),
        migrations.AddIndex(
            model_name="node",
            index=models.Index(sizing.models.zone.Zone("labels"), name="node_by_zone"),
        ),
        migrations.AddIndex(
            model_name="gpu",
            index=models.Index(fields=["type", "node"], name="gpu_by_type"),
        ),
        migrations.AddIndex(
            model_name="measurement",
            index=models.Index(fields=["-measured_at", "-id"], name="measurement_by_time"),
        ),
        migrations.AddIndex(
            model_name="refresh",
            index=models.Index(fields=["-queued_at", "-id"], name="refresh_by_time"),
        ),
        migrations.AddIndex(
            model_name="replica",
            index=models.Index(fields=["state", "name"], name="replica_by_state"),
        ),
        migrations.AddConstraint(
            model_name="inventoryload",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["preview", "loaded", "refused"])),
                name="inventory_load_state_known",
            ),
        ),
    ]
