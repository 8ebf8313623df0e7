"""A branch may have several exports, each with a name; the one that it has keeps none.

The version before goes on with exports that have no name. It takes a named one for that of its branch where the branch
has no other: names are given once all processes are of this version.
"""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('exports', '0012_store_at_success'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='export',
            options={'ordering': ['repository', 'branch', 'name', 'pk']},
        ),
        migrations.AddField(
            model_name='export',
            name='name',
            field=models.CharField(blank=True, db_default='', default='', help_text='tells it from other exports of the branch; empty: the one without a name', max_length=63),
        ),
        migrations.AddConstraint(
            model_name='export',
            constraint=models.UniqueConstraint(fields=('region', 'repository', 'branch', 'name'), name='export_of_name_once'),
        ),
        migrations.RemoveConstraint(
            model_name='export',
            name='export_once',
        ),
    ]
