"""The tables of the audit come from the app `rbac`: only what Django knows of them changes."""

from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('rbac', '0006_sessions_and_guesses'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='AuditChain',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.BigIntegerField(default=0)),
                        ('digest', models.CharField(default='0000000000000000000000000000000000000000000000000000000000000000', max_length=64)),
                        ('at', models.DateTimeField(null=True)),
                        ('check_number', models.BigIntegerField(default=0)),
                        ('check_digest', models.CharField(default='0000000000000000000000000000000000000000000000000000000000000000', max_length=64)),
                        ('check_began_at', models.DateTimeField(null=True)),
                        ('whole_number', models.BigIntegerField(default=0)),
                        ('whole_at', models.DateTimeField(null=True)),
                        ('wrong', models.CharField(blank=True, max_length=300)),
                    ],
                    options={
                        'db_table': 'rbac_auditchain',
                    },
                ),
                migrations.CreateModel(
                    name='AuditCheckpoint',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.BigIntegerField(help_text='the last event that is in the file', unique=True)),
                        ('digest', models.CharField(help_text='its digest', max_length=64)),
                        ('first', models.BigIntegerField(help_text='the first event that is in the file')),
                        ('previous', models.CharField(help_text='the digest before it', max_length=64)),
                        ('file', models.CharField(max_length=1000)),
                        ('file_digest', models.CharField(help_text='SHA-256 of the file', max_length=64)),
                        ('sealed_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'db_table': 'rbac_auditcheckpoint',
                    },
                ),
                migrations.CreateModel(
                    name='AuditEvent',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('at', models.DateTimeField(auto_now_add=True, db_index=True)),
                        ('actor', models.CharField(blank=True, max_length=128)),
                        ('key_id', models.CharField(blank=True, max_length=40)),
                        ('action', models.CharField(max_length=64)),
                        ('arn', models.CharField(max_length=1400)),
                        ('before', models.JSONField(blank=True, null=True)),
                        ('after', models.JSONField(blank=True, null=True)),
                        ('reason', models.CharField(blank=True, max_length=1000)),
                        ('request_id', models.CharField(blank=True, max_length=64)),
                        ('address', models.GenericIPAddressField(blank=True, null=True)),
                        ('refused', models.BooleanField(db_default=False, default=False)),
                        ('times', models.PositiveIntegerField(db_default=1, default=1)),
                        ('number', models.BigIntegerField(null=True, unique=True)),
                        ('digest', models.CharField(blank=True, max_length=64)),
                    ],
                    options={
                        'db_table': 'rbac_auditevent',
                        'ordering': ('-pk',),
                        'indexes': [models.Index(fields=['arn', '-id'], name='audit_by_resource'), models.Index(fields=['actor', '-id'], name='audit_by_actor'), models.Index(fields=['-at', '-id'], name='audit_by_time'), models.Index(fields=['actor', '-at', '-id'], name='audit_of_actor_by_time'), models.Index(fields=['arn', '-at', '-id'], name='audit_of_arn_by_time'), models.Index(fields=['action', '-at', '-id'], name='audit_of_action_by_time'), models.Index(condition=models.Q(('refused', True)), fields=['-at', '-id'], name='audit_refused_by_time'), models.Index(condition=models.Q(('number', None)), fields=['id'], name='audit_not_chained')],
                    },
                ),
                migrations.CreateModel(
                    name='RefusalCount',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('since', models.DateTimeField()),
                        ('key', models.CharField(max_length=64)),
                        ('actor', models.CharField(blank=True, max_length=128)),
                        ('action', models.CharField(max_length=64)),
                        ('arn', models.CharField(blank=True, max_length=1400)),
                        ('network', models.CharField(blank=True, max_length=64)),
                        ('times', models.PositiveIntegerField(default=1)),
                        ('told', models.PositiveIntegerField(default=0)),
                        ('last_at', models.DateTimeField()),
                    ],
                    options={
                        'db_table': 'rbac_refusalcount',
                        'constraints': [models.UniqueConstraint(fields=('since', 'actor', 'key'), name='refusals_counted_once')],
                    },
                ),
            ],
        ),
    ]
