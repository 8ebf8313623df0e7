"""Mirrors that bring their objects themselves: how fast, and how much they have brought."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0021_older_versions_and_older_books'),
    ]

    operations = [
        migrations.AddField(
            model_name='mirror',
            name='copied',
            field=models.BigIntegerField(db_default=0, default=0, help_text='objects that were brought so far'),
        ),
        migrations.AddField(
            model_name='mirror',
            name='copied_bytes',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='mirror',
            name='copy_bytes_per_second',
            field=models.BigIntegerField(help_text='at most so many are brought; null: any number', null=True),
        ),
        migrations.AddField(
            model_name='mirror',
            name='copy_workers',
            field=models.IntegerField(db_default=16, default=16, help_text='objects that are brought at once'),
        ),
        migrations.AddField(
            model_name='mirror',
            name='copying_paused',
            field=models.BooleanField(db_default=False, default=False, help_text='nothing is brought, while checks and promotion go on'),
        ),
        migrations.AddField(
            model_name='mirror',
            name='object_replication',
            field=models.CharField(db_default='native', default='native', help_text='who copies its objects: native or managed', max_length=16),
        ),
        migrations.AddField(
            model_name='run',
            name='copied',
            field=models.BigIntegerField(db_default=0, default=0, help_text='those of them that it brought'),
        ),
        migrations.AddField(
            model_name='run',
            name='copied_bytes',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='run',
            name='lacking',
            field=models.BigIntegerField(db_default=0, default=0, help_text='objects that it found missing, and was to bring'),
        ),
    ]
