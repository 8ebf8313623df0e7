"""Labels, and the rules that choose by them. Older versions leave these columns alone."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0003_hours_and_maintenance'),
    ]

    operations = [
        migrations.AddField(
            model_name='alert',
            name='labels',
            field=models.JSONField(db_default={}, default=dict, help_text='those of the mirror or export, as last seen'),
        ),
        migrations.AddField(
            model_name='channel',
            name='labels',
            field=models.JSONField(db_default=[], default=list, help_text='patterns of labels, by core.labels; none: all'),
        ),
    ]
