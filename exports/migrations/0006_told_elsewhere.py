"""Where columns are told of."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('exports', '0005_foreign_files_and_late_writes'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='exportunit',
                    name='unit',
                    field=models.JSONField(help_text='as exports/engine/unit_rows.py writes it'),
                ),
                migrations.AlterField(
                    model_name='verificationunit',
                    name='unit',
                    field=models.JSONField(help_text='as exports/engine/unit_rows.py writes it'),
                ),
            ],
        ),
    ]
