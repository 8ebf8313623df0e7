"""Labels, and the rules that choose by them. Older versions leave these columns alone."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0030_waived_objects'),
    ]

    operations = [
        migrations.AddField(
            model_name='mirror',
            name='labels',
            field=models.JSONField(db_default={}, default=dict, help_text='key and value, as core.labels has them'),
        ),
    ]
