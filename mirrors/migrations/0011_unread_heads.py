"""A source branch may stand at a head whose history can't be read: it is not up to date then."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0010_records_under_proof'),
    ]

    operations = [
        migrations.AddField(
            model_name='sourcebranch',
            name='unread_head',
            field=models.CharField(blank=True, db_default='', default='', help_text="it moved on to this one, whose history can't be read", max_length=64),
        ),
        migrations.AddField(
            model_name='sourcebranch',
            name='unread_since',
            field=models.DateTimeField(help_text='when the first of such heads in a row was seen', null=True),
        ),
    ]
