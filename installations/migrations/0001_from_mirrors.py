"""Installations come from the app `mirrors`: only what Django knows of the tables changes."""

from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('mirrors', '0008_proof_at_the_act'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='Installation',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('region', models.CharField(max_length=64, unique=True)),
                        ('served_by', models.CharField(help_text='the region of the deployment that works for it', max_length=64)),
                        ('lakefs_endpoint', models.CharField(max_length=1000)),
                        ('lakefs_access_key_id', models.CharField(max_length=1000)),
                        ('store_endpoint', models.CharField(blank=True, max_length=1000)),
                        ('store_region', models.CharField(blank=True, max_length=1000)),
                        ('store_path_style', models.BooleanField(default=False)),
                        ('store_access', models.CharField(max_length=16)),
                        ('store_access_key_id', models.CharField(blank=True, max_length=1000)),
                        ('store_profile', models.CharField(blank=True, max_length=1000)),
                        ('store_role_arn', models.CharField(blank=True, max_length=1000)),
                        ('store_role_external_id', models.CharField(blank=True, max_length=1000)),
                        ('sts_endpoint', models.CharField(blank=True, max_length=1000)),
                        ('ca_bundle', models.CharField(blank=True, max_length=1000)),
                        ('proxy', models.CharField(blank=True, max_length=1000)),
                        ('sealed', models.TextField(help_text='the secrets, and with them all of the above')),
                        ('version', models.BigIntegerField(default=1, help_text='counts changes')),
                        ('changed_at', models.DateTimeField()),
                    ],
                    options={
                        'db_table': 'mirrors_installation',
                        'ordering': ['region'],
                    },
                ),
                migrations.CreateModel(
                    name='InstallationTest',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('region', models.CharField(max_length=64, unique=True)),
                        ('tested_at', models.DateTimeField()),
                        ('reachable', models.BooleanField()),
                        ('lakefs_version', models.CharField(blank=True, max_length=100)),
                        ('checks', models.JSONField(default=list, help_text='id, state, message, fix of each')),
                    ],
                    options={
                        'db_table': 'mirrors_installationtest',
                    },
                ),
            ],
        ),
    ]
