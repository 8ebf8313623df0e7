"""Merges that are held until regions have them: the policy of a mirror, and what lakeFS asked."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0028_bring_on_request'),
    ]

    operations = [
        migrations.AddField(
            model_name='mirror',
            name='held_since',
            field=models.DateTimeField(help_text='since when it holds merges; null: it does not', null=True),
        ),
        migrations.AddField(
            model_name='mirror',
            name='hold',
            field=models.JSONField(db_default=[], default=list, help_text='merges that wait until regions have them: core/holding.py'),
        ),
        migrations.CreateModel(
            name='HeldMerge',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('branch', models.CharField(max_length=256)),
                ('commit_id', models.CharField(help_text='the merge commit, which is no head yet', max_length=64)),
                ('merge_source', models.CharField(blank=True, default='', max_length=256)),
                ('state', models.CharField(choices=[('held', 'Held'), ('released', 'Released'), ('allowed', 'Allowed late'), ('refused', 'Refused'), ('not-taken', 'Not taken'), ('ungated', 'Ungated')], default='held', max_length=16)),
                ('copies', models.IntegerField(default=1, help_text='so many regions were wanted')),
                ('when_late', models.CharField(default='refuse', max_length=16)),
                ('complete_in', models.JSONField(default=list, help_text='the regions where it was proven whole when it was released')),
                ('detail', models.TextField(blank=True, default='', help_text="what was answered, or why its record can't be read")),
                ('held_at', models.DateTimeField()),
                ('until', models.DateTimeField(help_text='when an answer is given at the latest')),
                ('ended_at', models.DateTimeField(null=True)),
                ('seen_at', models.DateTimeField(help_text='when the branch was seen at it, or at what descends from it', null=True)),
                ('wanted', models.BooleanField(default=True, help_text='mirrors keep it: what arrived of it serves the next try')),
                ('repository', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='held_merges', to='mirrors.repository')),
            ],
            options={
                'ordering': ['-held_at', '-pk'],
                'indexes': [models.Index(fields=['repository', 'wanted', 'state'], name='held_merge_wanted'), models.Index(fields=['repository', '-held_at'], name='held_merge_latest'), models.Index(fields=['state', 'until'], name='held_merge_open')],
            },
        ),
    ]
