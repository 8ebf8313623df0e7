"""Duties and their lines come from the app `mirrors`: only what Django knows of the tables changes."""

import django.db.models.deletion
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
                    name='Duty',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.CharField(choices=[('manage', 'Manage'), ('sense', 'Sense'), ('copy', 'Copy'), ('validate', 'Validate'), ('promote', 'Promote')], max_length=16)),
                        ('subject', models.BigIntegerField(help_text="a Mirror's key; for `sense` a Repository's")),
                        ('queue', models.CharField(max_length=100)),
                        ('due_at', models.DateTimeField()),
                        ('woken_at', models.DateTimeField(help_text='when the last wake-up message was sent', null=True)),
                        ('holder', models.CharField(blank=True, max_length=64)),
                        ('until', models.DateTimeField(null=True)),
                        ('attempt', models.BigIntegerField(default=0)),
                        ('started_at', models.DateTimeField(null=True)),
                        ('ended_at', models.DateTimeField(null=True)),
                        ('succeeded_at', models.DateTimeField(null=True)),
                        ('failures', models.IntegerField(default=0, help_text='in a row')),
                        ('outcome', models.TextField(blank=True)),
                    ],
                    options={
                        'db_table': 'mirrors_duty',
                        'indexes': [models.Index(fields=['due_at'], name='duty_due')],
                        'constraints': [models.UniqueConstraint(fields=('kind', 'subject'), name='duty_once')],
                    },
                ),
                migrations.CreateModel(
                    name='JobLine',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('at', models.DateTimeField()),
                        ('level', models.CharField(max_length=16)),
                        ('worker', models.CharField(max_length=64)),
                        ('text', models.TextField()),
                        ('duty', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='lines', to='jobs.duty')),
                    ],
                    options={
                        'db_table': 'mirrors_jobline',
                    },
                ),
            ],
        ),
    ]
