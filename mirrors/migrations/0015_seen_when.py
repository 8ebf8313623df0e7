"""Since when an unread head is known, and since when nobody could see the tags."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0014_branches_begun_unread'),
    ]

    operations = [
        migrations.AddField(
            model_name='repository',
            name='tags_unseen_since',
            field=models.DateTimeField(help_text='since when nobody has seen its tags; null: the last look did', null=True),
        ),
        migrations.AddField(
            model_name='sourcebranch',
            name='unread_head_at',
            field=models.DateTimeField(
                help_text='when a head was seen first of which all since are descendants; null: in the very first look',
                null=True,
            ),
        ),
    ]
