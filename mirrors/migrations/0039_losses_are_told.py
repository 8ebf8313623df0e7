"""Losses that other mirrors of a source are told of, whatever becomes of the worker. Older versions leave it alone."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0038_who_asked_for_all'),
    ]

    operations = [
        migrations.AddField(
            model_name='blocker',
            name='loss_untold',
            field=models.BooleanField(db_default=False, default=False, help_text='it was found to be gone at the source, too, and its other mirrors are to verify what may name it'),
        ),
        migrations.AddIndex(
            model_name='blocker',
            index=models.Index(condition=models.Q(('loss_untold', True)), fields=['mirror'], name='blocker_loss_untold'),
        ),
    ]
