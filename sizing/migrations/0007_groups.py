"""Groups for people: viewer, operator, administrator.

A group of that name that people have made already stays as they made it. A later migration that makes a
table gives its permissions to these groups.
"""

from django.apps import apps as installed
from django.contrib.auth.management import create_permissions
from django.db import migrations
from django.db.models import Q

WORKED_ON = (
    # Fleet and catalog
    "node",
    "gpu",
    "replica",
    "placement",
    "servedmodel",
    "variant",
    "benchprofile",
    # What was measured, and what is wished for
    "measurement",
    "benchlevel",
    "refresh",
    "target",
    # Files that people bring
    "benchimport",
    "benchfile",
    "clusterimport",
    "inventoryload",
)
"""What operators add, change and delete."""

KEYS = "apitoken"
"""What only administrators see."""


def permissions_of(name: str) -> Q:
    """The permissions of a group of this name."""
    ours = Q(content_type__app_label="sizing")
    people = Q(content_type__app_label="auth", content_type__model__in=("user", "group"))
    if name == "administrator":
        return ours | people
    sees = ours & Q(codename__startswith="view_") & ~Q(content_type__model=KEYS)
    return sees if name == "viewer" else sees | (ours & Q(content_type__model__in=WORKED_ON))


def make_groups(apps, schema_editor):
    using = schema_editor.connection.alias
    # Django makes permissions after all migrations, which is too late here.
    for label in ("auth", "sizing"):
        create_permissions(installed.get_app_config(label), verbosity=0, using=using, apps=apps)
    groups = apps.get_model("auth", "Group").objects.using(using)
    permissions = apps.get_model("auth", "Permission").objects.using(using)
    for name in ("viewer", "operator", "administrator"):
        group, is_new = groups.get_or_create(name=name)
        if is_new:
            group.permissions.set(permissions.filter(permissions_of(name)))


class Migration(migrations.Migration):
    dependencies = [
        ("sizing", "0006_inventory_load"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    # Groups stay when this is taken back: people are in them.
    operations = [migrations.RunPython(make_groups, migrations.RunPython.noop, elidable=False)]
