"""Checks that somebody had stopped."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mirrors", "0002_risk")]

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
    ]
