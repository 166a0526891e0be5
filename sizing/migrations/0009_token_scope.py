"""What a token may, when it was used and revoked; and failed sign-ins."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sizing", "0008_answers")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="scope",
            field=models.CharField(
                choices=[("full", "full: all that its user may"), ("read", "read only")],
                db_default="full",
                default="full",
                max_length=4,
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="last_used_at",
            field=models.DateTimeField(blank=True, help_text="Written about once a minute.", null=True),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="revoked_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.CheckConstraint(
                condition=models.Q(("scope__in", ["full", "read"])), name="api_token_scope_known"
            ),
        ),
        migrations.CreateModel(
            name="SignInFailures",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("failures", models.PositiveIntegerField()),
                ("free_at", models.DateTimeField(help_text="Until then nothing is tried.")),
            ],
            options={
                "verbose_name_plural": "sign-in failures",
                "default_permissions": (),
                "indexes": [models.Index(fields=["free_at"], name="sign_in_failures_by_time")],
            },
        ),
    ]
