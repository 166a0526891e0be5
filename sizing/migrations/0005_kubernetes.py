"""What a Kubernetes cluster tells: who keeps a row, rules, imports, the state of the sync.

The triggers of the change log are made anew, since SQLite loses those of a table that gets a column.
"""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import sizing.models.fields
from sizing.models import triggers


class Migration(migrations.Migration):
    dependencies = [
        ("sizing", "0004_imports"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(triggers.drop, triggers.create),
        migrations.CreateModel(
            name="ClusterImport",
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
                (
                    "partial",
                    models.BooleanField(
                        default=False, help_text="Take an incomplete list: what it leaves out stays as it is."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("read", "read, not imported"),
                            ("importing", "Importing"),
                            ("done", "imported"),
                            ("failed", "refused"),
                        ],
                        default="queued",
                        max_length=9,
                    ),
                ),
                (
                    "trigger",
                    models.CharField(
                        choices=[("admin", "Admin"), ("api", "API"), ("command", "Command")], max_length=7
                    ),
                ),
                ("queued_at", models.DateTimeField(auto_now_add=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("progress", models.PositiveIntegerField(default=0, help_text="Percent.")),
                ("message", models.CharField(blank=True, default="", max_length=255)),
                ("cancel_requested", models.BooleanField(default=False)),
                (
                    "report",
                    models.JSONField(blank=True, default=dict, help_text="The cluster as it was read."),
                ),
                (
                    "changes",
                    models.JSONField(
                        blank=True, default=dict, help_text="What the import changes or has changed."
                    ),
                ),
                ("error", models.TextField(blank=True, default="")),
            ],
            options={
                "verbose_name": "cluster import",
                "ordering": ["-queued_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="ClusterSync",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("server", models.CharField(blank=True, default="", max_length=500)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("off", "Off"),
                            ("waiting", "waiting to start"),
                            ("listing", "Listing"),
                            ("watching", "Watching"),
                            ("failing", "Failing"),
                        ],
                        default="waiting",
                        max_length=8,
                    ),
                ),
                (
                    "attempt",
                    models.PositiveIntegerField(
                        default=0, help_text="Runs so far; a newer one ends an older."
                    ),
                ),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("listed_at", models.DateTimeField(blank=True, help_text="The last whole list.", null=True)),
                ("seen_at", models.DateTimeField(blank=True, null=True)),
                (
                    "changed_at",
                    models.DateTimeField(blank=True, help_text="The last change written.", null=True),
                ),
                ("failing_since", models.DateTimeField(blank=True, null=True)),
                ("failed_at", models.DateTimeField(blank=True, null=True)),
                ("failures", models.PositiveIntegerField(default=0, help_text="In a row.")),
                ("error", models.TextField(blank=True, default="", help_text="The last failure in words.")),
                (
                    "error_in",
                    models.CharField(blank=True, default="", help_text="What failed.", max_length=32),
                ),
                ("relists", models.PositiveIntegerField(default=0)),
                ("events", models.PositiveBigIntegerField(default=0)),
                ("nodes", models.PositiveIntegerField(default=0)),
                ("pods", models.PositiveIntegerField(default=0)),
                (
                    "report",
                    models.JSONField(blank=True, default=dict, help_text="Warnings and what was ignored."),
                ),
                ("changes", models.JSONField(blank=True, default=dict, help_text="The last change.")),
                (
                    "pods_seen",
                    models.BinaryField(
                        blank=True,
                        help_text="The pods with devices as last told, to try rules on: JSON in zlib.",
                        null=True,
                    ),
                ),
                ("sync_requested_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name": "cluster sync",
                "verbose_name_plural": "cluster sync",
            },
        ),
        migrations.CreateModel(
            name="MappingRule",
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
                        max_length=255, unique=True, validators=[sizing.models.fields.validate_name]
                    ),
                ),
                ("position", models.PositiveIntegerField(default=0, help_text="Lowest first.")),
                ("enabled", models.BooleanField(default=True)),
                (
                    "by",
                    models.CharField(
                        choices=[
                            ("label", "label of the pod"),
                            ("owner", "owner (Kind/name)"),
                            ("pod", "pod (namespace/name)"),
                            ("image", "container image"),
                            ("command", "command line of a container"),
                        ],
                        default="label",
                        max_length=8,
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The label's name; only for rules by label.",
                        max_length=317,
                        validators=[sizing.models.fields.validate_text],
                    ),
                ),
                (
                    "pattern",
                    models.CharField(
                        help_text="Regular expression that the whole value must match; its groups may stand in the names.",
                        max_length=500,
                    ),
                ),
                (
                    "namespace",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Regular expression for the whole namespace. Empty: any.",
                        max_length=255,
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The model's name; \\1 or \\g<name> stand for groups. Empty: no LLM, another workload.",
                        max_length=255,
                        validators=[sizing.models.fields.validate_text],
                    ),
                ),
                (
                    "variant",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The variant's name. Empty: found by its GPUs.",
                        max_length=255,
                        validators=[sizing.models.fields.validate_text],
                    ),
                ),
            ],
            options={
                "verbose_name": "mapping rule",
                "ordering": ["position", "id"],
            },
        ),
        migrations.AddField(
            model_name="node",
            name="source",
            field=models.CharField(
                blank=True,
                choices=[("", "by hand"), ("kubernetes", "Kubernetes")],
                default="",
                editable=False,
                max_length=10,
                verbose_name="kept by",
            ),
        ),
        migrations.AddField(
            model_name="replica",
            name="priority",
            field=models.BigIntegerField(
                blank=True,
                help_text="Where it differs from its model's. Empty: the model's.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(-2147483648),
                    django.core.validators.MaxValueValidator(2147483647),
                ],
            ),
        ),
        migrations.AddField(
            model_name="replica",
            name="source",
            field=models.CharField(
                blank=True,
                choices=[("", "by hand"), ("kubernetes", "Kubernetes")],
                default="",
                editable=False,
                max_length=10,
                verbose_name="kept by",
            ),
        ),
        migrations.AddField(
            model_name="servedmodel",
            name="source",
            field=models.CharField(
                blank=True,
                choices=[("", "by hand"), ("kubernetes", "Kubernetes")],
                default="",
                editable=False,
                max_length=10,
                verbose_name="kept by",
            ),
        ),
        migrations.AddField(
            model_name="variant",
            name="source",
            field=models.CharField(
                blank=True,
                choices=[("", "by hand"), ("kubernetes", "Kubernetes")],
                default="",
                editable=False,
                max_length=10,
                verbose_name="kept by",
            ),
        ),
        migrations.AddConstraint(
            model_name="node",
            constraint=models.CheckConstraint(
                condition=models.Q(("source__in", ["", "kubernetes"])), name="node_source_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="replica",
            constraint=models.CheckConstraint(
                condition=models.Q(("source__in", ["", "kubernetes"])), name="replica_source_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="servedmodel",
            constraint=models.CheckConstraint(
                condition=models.Q(("source__in", ["", "kubernetes"])), name="model_source_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="variant",
            constraint=models.CheckConstraint(
                condition=models.Q(("source__in", ["", "kubernetes"])), name="variant_source_known"
            ),
        ),
        migrations.AddField(
            model_name="clusterimport",
            name="requested_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="clustersync",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["off", "waiting", "listing", "watching", "failing"])),
                name="cluster_sync_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="mappingrule",
            constraint=models.CheckConstraint(
                condition=models.Q(("by__in", ["label", "owner", "pod", "image", "command"])),
                name="rule_by_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="mappingrule",
            constraint=models.CheckConstraint(
                condition=models.Q(("pattern", ""), _negated=True), name="rule_has_a_pattern"
            ),
        ),
        migrations.AddConstraint(
            model_name="mappingrule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("by", "label"), _negated=True),
                    models.Q(("key", ""), _negated=True),
                    _connector="OR",
                ),
                name="rule_by_label_has_a_key",
            ),
        ),
        migrations.AddConstraint(
            model_name="clusterimport",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["queued", "running", "read", "importing", "done", "failed"])
                ),
                name="cluster_import_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="clusterimport",
            constraint=models.CheckConstraint(
                condition=models.Q(("progress__lte", 100)), name="cluster_import_progress_to_100"
            ),
        ),
        migrations.RunPython(triggers.create, triggers.drop),
    ]
