"""How far a run is with what it brings, by lane. Older versions leave this column alone."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0031_labels'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='lanes',
            field=models.JSONField(db_default={}, default=dict, help_text='by lane the counts of spark_jobs/check/progress.py; empty: none yet'),
        ),
    ]
