"""A source branch may be there before any of its heads can be read: it is late from then on."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0013_sense_by_root'),
    ]

    operations = [
        migrations.AddField(
            model_name='sourcebranch',
            name='begun_at',
            field=models.DateTimeField(help_text='when it was first seen, if none of its heads was read then', null=True),
        ),
    ]
