"""What is proven is asked at the moment of the act: what was looked for, metaranges, intents. Earlier checks prove
nothing any more: they asked stores that may have answered for the other site, and did not note what they looked for."""

import django.db.models.deletion
from django.db import migrations, models


def judge_anew(apps, schema_editor):
    """No branch is moved: all commits are judged once more, by checks that are made once more."""
    commits = apps.get_model("mirrors", "MirrorCommit").objects
    commits.filter(data__in=["complete", "gone", "waiting"]).update(data="unknown")
    commits.filter(history=True).update(history=False)
    blockers = apps.get_model("mirrors", "Blocker").objects
    blockers.filter(kind__in=["object", "range", "metarange"]).delete()


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0007_place_lock'),
    ]

    operations = [
        migrations.CreateModel(
            name='MetarangeCoverage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('mirror', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='metaranges', to='mirrors.mirror')),
                ('metarange_id', models.CharField(max_length=64)),
                ('state', models.CharField(choices=[('complete', 'Complete'), ('gone', 'Gone'), ('waiting', 'Waiting')], max_length=16)),
                ('ranges', models.IntegerField(default=0, help_text='how many it names')),
                ('checked_at', models.DateTimeField()),
                ('verify_at', models.DateTimeField(help_text='when it is looked for again; null while it has a blocker', null=True)),
            ],
        ),
        migrations.CreateModel(
            name='MoveIntent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('mirror', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='intents', to='mirrors.mirror')),
                ('name', models.CharField(help_text='of the branch; of the tag with `is_tag`', max_length=256)),
                ('is_tag', models.BooleanField(default=False)),
                ('from_commit', models.CharField(blank=True, max_length=64)),
                ('to_commit', models.CharField(blank=True, help_text='empty: to be deleted', max_length=64)),
                ('position', models.BigIntegerField(default=-1, help_text='of the candidate that it is')),
                ('why', models.CharField(max_length=64)),
                ('facts_epoch', models.BigIntegerField(default=0, help_text="the mirror's when it was judged")),
                ('at', models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name='blocker',
            name='crc',
            field=models.BigIntegerField(help_text="CRC-32 of an object's address, as Coverage.looked has it", null=True),
        ),
        migrations.AddField(
            model_name='blocker',
            name='full',
            field=models.BooleanField(help_text='the address is a URI of its own, not below the namespace; null: of an older version', null=True),
        ),
        migrations.AddField(
            model_name='coverage',
            name='doubt',
            field=models.CharField(blank=True, choices=[('', 'None'), ('shared', 'it was complete, and may name something that was found missing or wrong: it is read'), ('fresh', 'the same of one that was not complete yet'), ('whole', 'all that it names is looked for anew')], db_default='', default='', max_length=8),
        ),
        migrations.AddField(
            model_name='coverage',
            name='looked',
            field=models.BinaryField(help_text='CRC-32 of each address that was looked for and not left out on account of a base, ascending, as little-endian uint32; null (of an older version) proves nothing', null=True),
        ),
        migrations.AddField(
            model_name='coverage',
            name='max_key',
            field=models.BinaryField(help_text='the beginning of its last path', null=True),
        ),
        migrations.AddField(
            model_name='coverage',
            name='min_key',
            field=models.BinaryField(help_text='the beginning of its first path', null=True),
        ),
        migrations.AddField(
            model_name='mirror',
            name='facts_epoch',
            field=models.BigIntegerField(db_default=0, default=0, help_text='counts the times that something proven was taken back'),
        ),
        migrations.AddField(
            model_name='mirror',
            name='store',
            field=models.CharField(blank=True, db_default='', default='', help_text='the store that its checks were made at', max_length=1100),
        ),
        migrations.AddField(
            model_name='mirrorbranch',
            name='misplaced',
            field=models.BooleanField(db_default=False, default=False, help_text='its head is not where this mirror put it, and is to be put back'),
        ),
        migrations.AddField(
            model_name='mirrorbranch',
            name='proven',
            field=models.BooleanField(db_default=False, default=False, help_text='its head is proven whole now: kept by mirrors/proven_heads.py'),
        ),
        migrations.AddField(
            model_name='repository',
            name='unrelated_since',
            field=models.DateTimeField(help_text='when a history was first seen that shares no commit with what was known of the source', null=True),
        ),
        migrations.AlterField(
            model_name='blocker',
            name='etag',
            field=models.TextField(blank=True),
        ),
        migrations.AddIndex(
            model_name='blocker',
            index=models.Index(fields=['mirror', 'crc'], name='blocker_crc'),
        ),
        migrations.AddIndex(
            model_name='coverage',
            index=models.Index(fields=['mirror', 'max_key'], name='coverage_keys'),
        ),
        migrations.AddIndex(
            model_name='metarangecoverage',
            index=models.Index(fields=['mirror', 'verify_at'], name='metarange_to_verify'),
        ),
        migrations.AddConstraint(
            model_name='metarangecoverage',
            constraint=models.UniqueConstraint(fields=('mirror', 'metarange_id'), name='metarange_coverage_once'),
        ),
        migrations.AddConstraint(
            model_name='moveintent',
            constraint=models.UniqueConstraint(fields=('mirror', 'is_tag', 'name', 'to_commit'), name='move_intent_once'),
        ),
        migrations.RunPython(judge_anew, migrations.RunPython.noop),
    ]
