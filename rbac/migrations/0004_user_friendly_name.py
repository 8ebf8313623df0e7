from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('rbac', '0003_idempotency_keys'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='friendly_name',
            field=models.CharField(blank=True, db_default='', default='', max_length=200),
        ),
    ]
