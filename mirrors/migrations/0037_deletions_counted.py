"""What sweeps delete counts by when it is deleted, also where nobody came to note it. Older versions leave it alone."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0036_one_meaning_of_bringing'),
    ]

    operations = [
        migrations.AddField(
            model_name='sweep',
            name='deleted_at',
            field=models.DateTimeField(help_text='when it last began to delete something', null=True),
        ),
        migrations.AddField(
            model_name='sweep',
            name='under_way',
            field=models.JSONField(help_text='places, in the list of what is due, of those that may be deleted and are not counted', null=True),
        ),
    ]
