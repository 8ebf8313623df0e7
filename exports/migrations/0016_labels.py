"""Labels, and the rules that choose by them. Older versions leave these columns alone."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('exports', '0015_pauses_with_reason_and_end'),
    ]

    operations = [
        migrations.AddField(
            model_name='export',
            name='labels',
            field=models.JSONField(db_default={}, default=dict, help_text='key and value, as core.labels has them'),
        ),
    ]
