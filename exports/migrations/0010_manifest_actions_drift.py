"""Manifests that are not written each time, exports without `_lakefs_actions/`, runs that repair what drifted."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('exports', '0009_status_files_as_they_stand'),
    ]

    operations = [
        migrations.AddField(
            model_name='export',
            name='actions',
            field=models.BooleanField(db_default=True, default=False, help_text='with what is below _lakefs_actions/; true: as versions before did'),
        ),
        migrations.AddField(
            model_name='export',
            name='actions_at_success',
            field=models.BooleanField(db_default=True, default=False, help_text='whether the last success brought what is below _lakefs_actions/'),
        ),
        migrations.AddField(
            model_name='export',
            name='manifest',
            field=models.CharField(choices=[('always', 'After every run'), ('daily', 'At most once a day'), ('never', 'Never')], db_default='always', default='daily', help_text='when the list of all files is written; always: as versions before did', max_length=8),
        ),
        migrations.AddField(
            model_name='exportrun',
            name='actions',
            field=models.BooleanField(db_default=True, default=True, help_text='with what is below _lakefs_actions/'),
        ),
        migrations.AddField(
            model_name='exportrun',
            name='actions_anew',
            field=models.BooleanField(db_default=False, default=False, help_text='what is below _lakefs_actions/ may lie there otherwise than wanted'),
        ),
        migrations.AddField(
            model_name='exportrun',
            name='listed',
            field=models.BooleanField(help_text='whether it wrote a manifest; null: a version before did, where it succeeded', null=True),
        ),
        migrations.AddField(
            model_name='exportrun',
            name='repairs',
            field=models.ForeignKey(db_constraint=False, help_text='it brings again what this one found missing or different; null: it brings a commit', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='repairs', to='exports.exportverification'),
        ),
        migrations.AddField(
            model_name='exportverification',
            name='actions',
            field=models.BooleanField(db_default=True, default=True, help_text='with what is below _lakefs_actions/'),
        ),
        migrations.CreateModel(
            name='ExportManifest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uri', models.CharField(max_length=4096)),
                ('size', models.BigIntegerField(help_text='as the store told it after the write')),
                ('etag', models.CharField(max_length=256)),
                ('written_at', models.DateTimeField()),
                ('export', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='manifests', to='exports.export')),
                ('run', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='listing', to='exports.exportrun')),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
    ]
