"""What a worker serves, and the request that a row was made in.

Processes of the release before may run on: the database fills in what they do not know of.
"""

from django.db import migrations, models

import sizing.log_context


def _request_id():
    return models.CharField(
        blank=True,
        db_default="",
        default=sizing.log_context.request_id,
        editable=False,
        help_text="Of the request in the log.",
        max_length=64,
    )


class Migration(migrations.Migration):
    dependencies = [("sizing", "0009_token_scope")]

    operations = [
        migrations.AddField(
            model_name="workerbeat",
            name="queues",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="Those that it takes messages of.",
            ),
        ),
        migrations.AddField("refresh", "request_id", _request_id()),
        migrations.AddField("benchimport", "request_id", _request_id()),
        migrations.AddField("clusterimport", "request_id", _request_id()),
    ]
