"""Whose heads a mirror that brings its objects itself brings first."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0026_pauses_with_reason_and_end'),
    ]

    operations = [
        migrations.AddField(
            model_name='mirror',
            name='branch_priority',
            field=models.JSONField(db_default=[], default=list, help_text="globs of branches whose heads are brought first, after the default one's"),
        ),
    ]
