"""The rules of garbage collection of both sides, as they were last read."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0019_known_wrong_is_kept'),
    ]

    operations = [
        migrations.AddField(
            model_name='mirror',
            name='gc_rules',
            field=models.JSONField(help_text='rules of garbage collection as last read at both sides: core/mirroring/explain/gc_rules.py', null=True),
        ),
        migrations.AddField(
            model_name='mirror',
            name='gc_rules_at',
            field=models.DateTimeField(help_text='when they were last asked for', null=True),
        ),
    ]
