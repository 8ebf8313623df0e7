"""A place is marked in a store: at another endpoint, the same address is another place."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('exports', '0010_manifest_actions_drift'),
    ]

    operations = [
        migrations.AddField(
            model_name='markedplace',
            name='store',
            field=models.CharField(blank=True, help_text='its host; null: written down by a version that did not know', max_length=300, null=True),
        ),
        migrations.AlterField(
            model_name='markedplace',
            name='place',
            field=models.CharField(db_index=True, max_length=2048),
        ),
        migrations.AddConstraint(
            model_name='markedplace',
            constraint=models.UniqueConstraint(fields=('place', 'store'), name='place_of_store_marked_once'),
        ),
        migrations.AddConstraint(
            model_name='markedplace',
            constraint=models.UniqueConstraint(condition=models.Q(('store', None)), fields=('place',), name='place_marked_once'),
        ),
    ]
