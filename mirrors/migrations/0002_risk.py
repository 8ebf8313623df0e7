"""How late a branch may be, when it was later, and which commits go first."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("mirrors", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="mirror",
            name="rpo_seconds",
            field=models.IntegerField(help_text="how late a branch may be; null: core.lag.LATE_AFTER", null=True),
        ),
        migrations.AddField(
            model_name="mirror",
            name="watched_since",
            field=models.DateTimeField(
                help_text="since when breaches of that are noted: the end of its first copy", null=True
            ),
        ),
        migrations.CreateModel(
            name="LagBreach",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("branch", models.CharField(max_length=256)),
                (
                    "began_at",
                    models.DateTimeField(help_text="when the oldest commit that is not mirrored became too old"),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "mirror",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="breaches", to="mirrors.mirror"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["mirror", "branch", "-began_at"], name="breach_latest")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(("ended_at", None)), fields=("mirror", "branch"), name="breach_open_once"
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="mirrorcommit",
            name="urgency",
            field=models.SmallIntegerField(
                choices=[
                    (0, "in its turn"),
                    (1, "somebody wants it first; what it needs is not marked yet"),
                    (2, "goes first, and so does all that it needs"),
                ],
                db_default=0,
                default=0,
                help_text="whether it goes before others",
            ),
        ),
        migrations.AddIndex(
            model_name="mirrorcommit",
            index=models.Index(
                condition=Q(("urgency__gt", 0)), fields=["mirror", "commit"], name="mirror_commit_urgent"
            ),
        ),
    ]
