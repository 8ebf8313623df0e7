"""A pause with its reason and the end that somebody meant. Older versions leave these columns alone."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0025_objects_per_second'),
    ]

    operations = [
        migrations.AddField(
            model_name='mirror',
            name='pause_reason',
            field=models.CharField(blank=True, db_default='', default='', max_length=200),
        ),
        migrations.AddField(
            model_name='mirror',
            name='paused_at',
            field=models.DateTimeField(help_text='when it was paused; null: not, or by an older version', null=True),
        ),
        migrations.AddField(
            model_name='mirror',
            name='paused_by',
            field=models.CharField(blank=True, db_default='', default='', max_length=150),
        ),
        migrations.AddField(
            model_name='mirror',
            name='paused_until',
            field=models.DateTimeField(help_text='when the pause was meant to end; null: nobody said', null=True),
        ),
    ]
