"""Checks that somebody had stopped, and what workers said lately."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mirrors", "0003_measures")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="validation",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="runs",
                to="mirrors.validation",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="stop_asked",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="somebody wants it stopped: nothing more is written of it",
            ),
        ),
        migrations.AddField(
            model_name="validation",
            name="stopped_by",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="who had it stopped, if somebody did",
                max_length=150,
            ),
        ),
        migrations.CreateModel(
            name="JobLine",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("level", models.CharField(max_length=16)),
                ("worker", models.CharField(max_length=64)),
                ("text", models.TextField()),
                (
                    "duty",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lines",
                        to="mirrors.duty",
                    ),
                ),
            ],
        ),
    ]
