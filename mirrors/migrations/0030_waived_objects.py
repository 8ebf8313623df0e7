"""Objects that a waiver accepts as missing, for all commits that hold them."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0029_held_merges'),
    ]

    operations = [
        migrations.CreateModel(
            name='WaivedObject',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('address', models.TextField()),
                ('address_hash', models.CharField(max_length=32)),
                ('full', models.BooleanField(default=False)),
                ('path', models.TextField(blank=True, help_text='where a commit has it; others may have it elsewhere')),
                ('mirror', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='waived_objects', to='mirrors.mirror')),
                ('waiver', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='objects_waived', to='mirrors.waiver')),
            ],
        ),
        migrations.AddField(
            model_name='blocker',
            name='waived',
            field=models.BooleanField(db_default=False, default=False, help_text="the object is waived: while it can't be read there, it is in no descendant's way"),
        ),
        migrations.AddIndex(
            model_name='blocker',
            index=models.Index(condition=models.Q(('waived', True)), fields=['mirror'], name='blocker_waived'),
        ),
        migrations.AddConstraint(
            model_name='waivedobject',
            constraint=models.UniqueConstraint(fields=('mirror', 'address_hash', 'full'), name='waived_object_once'),
        ),
    ]
