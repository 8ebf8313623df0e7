"""What was done, and to what: for pages to say and to find. Rows of the version before are blank there."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('audit', '0001_from_rbac'),
    ]

    operations = [
        migrations.AddField(
            model_name='auditevent',
            name='subject',
            field=models.CharField(blank=True, db_default='', default='', max_length=600),
        ),
        migrations.AddField(
            model_name='auditevent',
            name='verb',
            field=models.CharField(blank=True, db_default='', default='', max_length=20),
        ),
        migrations.AddIndex(
            model_name='auditevent',
            index=models.Index(fields=['subject', '-id'], name='audit_by_subject'),
        ),
    ]
