"""What was measured of mirrors over time."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mirrors", "0002_risk"),
    ]

    operations = [
        migrations.CreateModel(
            name="Measure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("minutes", models.SmallIntegerField(help_text="its length: 5 or 60")),
                ("began_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                (
                    "settled",
                    models.BooleanField(
                        db_default=False, default=False, help_text="over for long enough to be left alone"
                    ),
                ),
                ("read_at", models.DateTimeField(help_text="when lag and backlog were last read in it", null=True)),
                ("lag_seconds", models.FloatField(help_text="the worst that was read, of any branch", null=True)),
                ("backlog", models.BigIntegerField(help_text="the most commits that branches lacked", null=True)),
                ("backlog_last", models.BigIntegerField(help_text="how many that were at the last reading", null=True)),
                ("missing", models.BigIntegerField(help_text="the most things that were waited for", null=True)),
                ("promoted", models.BigIntegerField(help_text="commits that became the head of a branch", null=True)),
                ("checks", models.BigIntegerField(help_text="runs that began", null=True)),
                ("objects_checked", models.BigIntegerField(db_default=0, default=0)),
                ("bytes_checked", models.BigIntegerField(db_default=0, default=0)),
                (
                    "mirror",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="measures", to="mirrors.mirror"
                    ),
                ),
            ],
            options={
                "ordering": ["began_at"],
                "indexes": [
                    models.Index(condition=models.Q(("settled", False)), fields=["mirror"], name="measure_unsettled")
                ],
                "constraints": [models.UniqueConstraint(fields=("mirror", "minutes", "began_at"), name="measure_once")],
            },
        ),
    ]
