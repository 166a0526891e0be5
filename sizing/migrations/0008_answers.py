"""Answers that were given, and the inventories that they rest on."""

import uuid

import django.db.models.deletion
from django.apps import apps as installed
from django.conf import settings
from django.contrib.auth.management import create_permissions
from django.db import migrations, models


def let_groups_look(apps, schema_editor):
    """The groups for people see answers, where there are groups of these names."""
    using = schema_editor.connection.alias
    # Django makes permissions after all migrations, which is too late here.
    create_permissions(installed.get_app_config("sizing"), verbosity=0, using=using, apps=apps)
    looking = apps.get_model("auth", "Permission").objects.using(using)
    permission = looking.get(content_type__app_label="sizing", codename="view_answer")
    groups = apps.get_model("auth", "Group").objects.using(using)
    for group in groups.filter(name__in=("viewer", "operator", "administrator")):
        group.permissions.add(permission)


class Migration(migrations.Migration):
    dependencies = [
        ("sizing", "0007_groups"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="KeptInventory",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "revision",
                    models.BigIntegerField(help_text="Newest row of the change log when it was read."),
                ),
                ("nonce", models.BigIntegerField(help_text="Of that row: no other history has it.")),
                ("taken_at", models.DateTimeField(auto_now_add=True)),
                ("body", models.BinaryField(help_text="JSON, compressed by zlib.")),
                (
                    "base",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="differences",
                        to="sizing.keptinventory",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "kept inventories",
                "ordering": ["id"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Answer",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("asked_at", models.DateTimeField()),
                (
                    "channel",
                    models.CharField(
                        choices=[("page", "Page"), ("api", "API"), ("command", "Command")],
                        help_text="By which way it was asked.",
                        max_length=7,
                    ),
                ),
                (
                    "asked_by_name",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Empty: a command, which has no account.",
                        max_length=150,
                    ),
                ),
                ("model", models.CharField(max_length=255)),
                (
                    "profile",
                    models.CharField(blank=True, default="", help_text="Empty: none named.", max_length=255),
                ),
                (
                    "variant",
                    models.CharField(blank=True, default="", help_text="Empty: none named.", max_length=255),
                ),
                ("tokens_per_sec", models.CharField(max_length=100, verbose_name="tokens/s")),
                ("utilization", models.CharField(default="1", max_length=100)),
                (
                    "as_if",
                    models.JSONField(blank=True, default=list, help_text="What was supposed, in order."),
                ),
                (
                    "asked_key",
                    models.CharField(
                        help_text="Digest of who asks what by which way; alike for the polls of one question.",
                        max_length=64,
                    ),
                ),
                (
                    "revision",
                    models.BigIntegerField(blank=True, help_text="Revision of the inventory.", null=True),
                ),
                ("nonce", models.BigIntegerField(blank=True, null=True)),
                ("measured", models.JSONField(help_text="The figures of that measurement, as they were.")),
                ("fits", models.BooleanField()),
                (
                    "result",
                    models.JSONField(
                        help_text="The answer in its public form, without ages and without nodes."
                    ),
                ),
                ("digest", models.CharField(help_text="Of the result.", max_length=64)),
                (
                    "asked_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "measurement",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="answers",
                        to="sizing.measurement",
                    ),
                ),
                (
                    "inventory",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="answers",
                        to="sizing.keptinventory",
                    ),
                ),
            ],
            options={
                "ordering": ["-asked_at", "-id"],
                "default_permissions": ("view",),
            },
        ),
        migrations.AddConstraint(
            model_name="keptinventory",
            constraint=models.UniqueConstraint(fields=("revision", "nonce"), name="kept_inventory_once"),
        ),
        migrations.AddIndex(
            model_name="answer",
            index=models.Index(fields=["-asked_at", "-id"], name="answer_by_time"),
        ),
        migrations.AddIndex(
            model_name="answer",
            index=models.Index(fields=["model", "-asked_at"], name="answer_by_model"),
        ),
        migrations.AddIndex(
            model_name="answer",
            index=models.Index(fields=["asked_key", "-asked_at"], name="answer_by_key"),
        ),
        migrations.AddConstraint(
            model_name="answer",
            constraint=models.CheckConstraint(
                condition=models.Q(("channel__in", ["page", "api", "command"])), name="answer_channel_known"
            ),
        ),
        migrations.RunPython(let_groups_look, migrations.RunPython.noop, elidable=False),
    ]
