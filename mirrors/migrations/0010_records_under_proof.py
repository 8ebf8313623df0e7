"""A worker that ends between sending a record again and noting the answer leaves word that it may have been lost."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0009_duties_and_installations_move'),
    ]

    operations = [
        migrations.AddField(
            model_name='mirror',
            name='proving_records',
            field=models.BooleanField(db_default=False, default=False, help_text='records were sent again, and nobody heard yet if one was lost'),
        ),
        migrations.AddField(
            model_name='mirrorcommit',
            name='resent',
            field=models.BooleanField(db_default=False, default=False, help_text='its record was sent again, and nobody heard yet if it was lost'),
        ),
    ]
