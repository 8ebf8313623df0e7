"""Checks of workers of older versions prove nothing: each round looks for them by an index. When a mirror's rounds went
on after a pause: its database may have been restored."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0020_gc_rules'),
    ]

    operations = [
        migrations.AddField(
            model_name='mirror',
            name='resumed_at',
            field=models.DateTimeField(help_text='when a round of promotion found that there had been none for a while', null=True),
        ),
        migrations.AddIndex(
            model_name='coverage',
            index=models.Index(condition=models.Q(('looked', None), models.Q(('depth', ''), _negated=True)), fields=['mirror'], name='coverage_unnoted'),
        ),
    ]
