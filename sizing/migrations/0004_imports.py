"""Result files that people bring, and what was found in them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import sizing.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("sizing", "0003_measuring"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="BenchImport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "force",
                    models.BooleanField(
                        default=False, help_text="Take points of another shape than the profile's."
                    ),
                ),
                (
                    "leave_out_broken",
                    models.BooleanField(
                        default=False, help_text="Leave out, on purpose, what is broken or of another shape."
                    ),
                ),
                (
                    "store_when_right",
                    models.BooleanField(
                        default=False,
                        help_text="Store the measurement once all is read and nothing is refused.",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("stored", "Stored"),
                        ],
                        default="queued",
                        max_length=7,
                    ),
                ),
                (
                    "trigger",
                    models.CharField(
                        choices=[("admin", "Admin"), ("api", "API"), ("command", "Command")], max_length=7
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("progress", models.PositiveIntegerField(default=0, help_text="Percent.")),
                ("queued_at", models.DateTimeField(auto_now_add=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "preview",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="What was found: points, verdicts, sweeps, and what is refused.",
                    ),
                ),
                (
                    "finding",
                    models.JSONField(
                        blank=True,
                        help_text="What would be stored; null where something is refused.",
                        null=True,
                    ),
                ),
                ("error", models.TextField(blank=True, default="")),
                (
                    "measurement",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="bench_import",
                        to="sizing.measurement",
                    ),
                ),
                (
                    "profile",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="imports",
                        to="sizing.benchprofile",
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
                    "variant",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="imports",
                        to="sizing.variant",
                    ),
                ),
            ],
            options={
                "ordering": ["-queued_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="BenchFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "position",
                    models.PositiveIntegerField(help_text="In the order in which they were given, from 1."),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="As its sender named it: a label, not a path.",
                        max_length=255,
                        validators=[sizing.models.fields.validate_text],
                    ),
                ),
                ("size", models.PositiveIntegerField(help_text="Bytes as it came.")),
                ("sha256", models.CharField(help_text="Of the file as it came.", max_length=64)),
                (
                    "measurement",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="sizing.measurement",
                    ),
                ),
                (
                    "bench_import",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="sizing.benchimport",
                    ),
                ),
            ],
            options={
                "ordering": ["position", "id"],
            },
        ),
        migrations.CreateModel(
            name="BenchFilePart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                (
                    "content",
                    models.BinaryField(
                        help_text="The whole file, compressed by zlib, is all parts one after another."
                    ),
                ),
                (
                    "file",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="sizing.benchfile",
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
                "base_manager_name": "light",
                "constraints": [models.UniqueConstraint(fields=("file", "position"), name="file_part_once")],
            },
            managers=[("objects", models.Manager()), ("light", models.Manager())],
        ),
        migrations.AddConstraint(
            model_name="benchimport",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["queued", "running", "done", "failed", "stored"])),
                name="import_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="benchimport",
            constraint=models.CheckConstraint(
                condition=models.Q(("progress__lte", 100)), name="import_progress_to_100"
            ),
        ),
        migrations.AddConstraint(
            model_name="benchfile",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("bench_import__isnull", True), ("measurement__isnull", True), _connector="XOR"
                ),
                name="file_has_one_owner",
            ),
        ),
    ]
