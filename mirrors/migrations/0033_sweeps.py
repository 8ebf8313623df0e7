"""Sweeps of mirrors that follow their source's garbage collection. Older versions leave these columns alone."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0032_lanes_of_runs'),
    ]

    operations = [
        migrations.AddField(
            model_name='mirror',
            name='delete_most',
            field=models.IntegerField(db_default=10000, default=10000, help_text='the same as a number of objects'),
        ),
        migrations.AddField(
            model_name='mirror',
            name='delete_percent',
            field=models.IntegerField(db_default=10, default=10, help_text='more of its objects are deleted at once only when somebody has approved it'),
        ),
        migrations.AddField(
            model_name='mirror',
            name='follow_gc',
            field=models.BooleanField(db_default=False, default=False, help_text="deletes what the source's garbage collection took, a week later"),
        ),
        migrations.CreateModel(
            name='Sweep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('looking', 'Looking'), ('waiting', 'Waiting for approval'), ('deleting', 'Deleting'), ('done', 'Done'), ('frozen', 'Nothing deleted'), ('rejected', 'Rejected'), ('expired', 'Expired'), ('ended', 'Ended early')], default='looking', max_length=16)),
                ('reason', models.TextField(blank=True, default='', help_text='why it waits, or deletes nothing')),
                ('pins', models.CharField(help_text='digest of the two repositories and stores that it is about', max_length=64)),
                ('began_at', models.DateTimeField()),
                ('looked_at', models.DateTimeField(help_text='when all of the namespace had been looked through', null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('listed', models.BigIntegerField(default=0, help_text='objects in the namespace')),
                ('listed_bytes', models.BigIntegerField(default=0)),
                ('found', models.BigIntegerField(default=0, help_text='those that nobody names and the source has no more')),
                ('found_bytes', models.BigIntegerField(default=0)),
                ('due', models.BigIntegerField(default=0, help_text='those of them that a sweep a week before had found too')),
                ('due_bytes', models.BigIntegerField(default=0)),
                ('digest', models.CharField(blank=True, default='', help_text='SHA-256 of the list of what was found', max_length=64)),
                ('kept_digest', models.CharField(blank=True, default='', help_text='SHA-256 of the list of what is kept', max_length=64)),
                ('tried', models.BigIntegerField(default=0, help_text='so many of what is due have had their turn')),
                ('deleted', models.BigIntegerField(default=0)),
                ('deleted_bytes', models.BigIntegerField(default=0)),
                ('spared', models.BigIntegerField(default=0, help_text='those that had come to be needed, or changed, when it was up')),
                ('locked', models.BigIntegerField(default=0, help_text='those that the store does not let anybody delete yet')),
                ('refused', models.BigIntegerField(default=0, help_text='those of which the store refused the deletion')),
                ('expires_at', models.DateTimeField(help_text='until when it may be approved', null=True)),
                ('decided_by', models.CharField(blank=True, default='', max_length=150)),
                ('decided_at', models.DateTimeField(null=True)),
                ('mirror', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='sweeps', to='mirrors.mirror')),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [models.Index(fields=['mirror', '-id'], name='sweep_latest')],
            },
        ),
    ]
