"""Duties and installations are apps of their own now, on the same tables; and where columns are told of."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0008_proof_at_the_act'),
        ('jobs', '0001_from_mirrors'),
        ('installations', '0001_from_mirrors'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveField(
                    model_name='jobline',
                    name='duty',
                ),
                migrations.DeleteModel(
                    name='Installation',
                ),
                migrations.DeleteModel(
                    name='InstallationTest',
                ),
                migrations.AlterField(
                    model_name='mirror',
                    name='rpo_seconds',
                    field=models.IntegerField(help_text='how late a branch may be; null: core.mirroring.rpo', null=True),
                ),
                migrations.AlterField(
                    model_name='mirrorbranch',
                    name='proven',
                    field=models.BooleanField(db_default=False, default=False, help_text='its head is proven whole now: kept by transitions/proven_heads.py'),
                ),
                migrations.DeleteModel(
                    name='Duty',
                ),
                migrations.DeleteModel(
                    name='JobLine',
                ),
            ],
        ),
    ]
