"""The audit is an app of its own now, on the same tables."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('rbac', '0006_sessions_and_guesses'),
        ('audit', '0001_from_rbac'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel(
                    name='AuditChain',
                ),
                migrations.DeleteModel(
                    name='AuditCheckpoint',
                ),
                migrations.DeleteModel(
                    name='AuditEvent',
                ),
                migrations.DeleteModel(
                    name='RefusalCount',
                ),
            ],
        ),
    ]
