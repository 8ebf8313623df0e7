from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0018_looks_that_fail'),
    ]

    operations = [
        migrations.AddField(
            model_name='blocker',
            name='unneeded',
            field=models.BooleanField(db_default=False, default=False, help_text='no commit that is needed waits for it: it is only remembered, until its holder is needed again'),
        ),
        migrations.AddField(
            model_name='moveintent',
            name='delete_asked',
            field=models.BooleanField(db_default=False, default=False, help_text='no longer selected since, and an operator wants it deleted, should it be made after all'),
        ),
        migrations.AlterField(
            model_name='coverage',
            name='deeper',
            field=models.CharField(blank=True, db_default='', default='', help_text="beyond the mirror's own: the depth that a check on demand found it damaged at. `content` also where reading found more than is kept by name: then all of it is read", max_length=16),
        ),
        migrations.AddIndex(
            model_name='coverage',
            index=models.Index(condition=models.Q(('deeper', ''), _negated=True), fields=['mirror'], name='coverage_deeper'),
        ),
    ]
