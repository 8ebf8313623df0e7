"""What status files say is noted with the runs that wrote them; of earlier runs it is concluded."""

from django.db import migrations, models


def note_earlier_runs(apps, schema_editor):
    runs = apps.get_model('exports', 'ExportRun').objects.exclude(status_path='').exclude(outcome='')
    later, written = set(), set()
    for run in runs.order_by('-pk').select_related('export').iterator(chunk_size=500):
        uri = (run.export_id, run.ref, run.status_path)
        failed = run.outcome == 'export-failed'
        repaired = failed and (run.export_id in later or run.export.state not in ('export-failed', 'export-repaired'))
        later.add(run.export_id)
        if uri in written or (failed and not repaired and 'The status could not be written either' in run.error):
            continue
        written.add(uri)
        state = 'export-repaired' if repaired else run.outcome
        run.told = f'status: {state}, signalled_errors: {max(1, run.failed) if failed else 0}\n'
        run.told_path = run.status_path
        run.save(update_fields=['told', 'told_path'])


class Migration(migrations.Migration):

    dependencies = [
        ('exports', '0008_places_wanted'),
    ]

    operations = [
        migrations.AddField(
            model_name='exportrun',
            name='told',
            field=models.CharField(blank=True, db_default='', default='', help_text='what its status file says; blank: there is none, or a later run has written it', max_length=100),
        ),
        migrations.AddField(
            model_name='exportrun',
            name='told_path',
            field=models.CharField(blank=True, db_default='', default='', help_text='the status path of that file', max_length=2048),
        ),
        migrations.RunPython(note_earlier_runs, migrations.RunPython.noop),
    ]
