"""Triggers that log every change to the tables that an answer depends on."""

from django.db import migrations

from sizing.models import triggers


class Migration(migrations.Migration):
    dependencies = [("sizing", "0001_tables")]
    operations = [migrations.RunPython(triggers.create, triggers.drop)]
