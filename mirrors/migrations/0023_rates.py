"""What arrives and what is mirrored in a time: commits by their own rows, new data as checks count it."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0022_managed_objects'),
    ]

    operations = [
        migrations.AddField(
            model_name='measure',
            name='bytes_new',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='measure',
            name='commits_mirrored',
            field=models.BigIntegerField(help_text='commits that branches of the mirror reached', null=True),
        ),
        migrations.AddField(
            model_name='measure',
            name='commits_seen',
            field=models.BigIntegerField(help_text='commits that were seen at the source first', null=True),
        ),
        migrations.AddField(
            model_name='measure',
            name='objects_new',
            field=models.BigIntegerField(db_default=0, default=0, help_text='those that no earlier check covered'),
        ),
        migrations.AddIndex(
            model_name='commit',
            index=models.Index(fields=['repository', 'seen_at'], name='commit_seen'),
        ),
        migrations.AddIndex(
            model_name='mirrorcommit',
            index=models.Index(condition=models.Q(('promoted_at__isnull', False)), fields=['mirror', 'promoted_at'], name='mirror_commit_promoted'),
        ),
        migrations.AddIndex(
            model_name='mirrorcommit',
            index=models.Index(condition=models.Q(('superseded_at__isnull', False)), fields=['mirror', 'superseded_at'], name='mirror_commit_superseded'),
        ),
    ]
