"""Where a call of ours put a branch: what lies below was proven then. Nobody knows it of what was put before."""


from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0015_seen_when'),
    ]

    operations = [
        migrations.AddField(
            model_name='mirrorbranch',
            name='placed',
            field=models.CharField(blank=True, db_default='', default='', help_text='the commit to which a call of ours brought it, after a proof of all records below', max_length=64),
        ),
    ]
