"""Users who come by a key of a lakeFS: which lakeFS, and which user there."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('rbac', '0007_audit_moves'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='lakefs_creation_date',
            field=models.BigIntegerField(blank=True, help_text="of the user there, in seconds since 1970: a name that is given anew is somebody else's", null=True),
        ),
        migrations.AddField(
            model_name='user',
            name='lakefs_region',
            field=models.CharField(blank=True, db_default='', default='', help_text='its lakeFS lets them in; blank: none does', max_length=64),
        ),
    ]
