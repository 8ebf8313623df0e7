"""What is known of markers at a place outlives the export that wrote them."""

from typing import Any

from django.db import migrations, models


def take_over(apps: Any, _: Any) -> None:
    """The places of all exports, with their expressions."""
    expressions: dict[str, list[str]] = {}
    for marked in apps.get_model("exports", "Export").objects.values_list("marked", flat=True):
        for place, patterns in marked.items():
            expressions.setdefault(place, []).extend(patterns)
    places = apps.get_model("exports", "MarkedPlace").objects
    for place, patterns in expressions.items():
        if patterns:
            places.create(place=place, expressions=list(dict.fromkeys(patterns)))


class Migration(migrations.Migration):

    dependencies = [
        ('exports', '0006_told_elsewhere'),
    ]

    operations = [
        migrations.CreateModel(
            name='MarkedPlace',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('place', models.CharField(max_length=2048, unique=True)),
                ('expressions', models.JSONField(default=list, help_text='all by which directories were marked')),
            ],
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='export',
                    name='marked',
                    field=models.JSONField(db_default={}, default=dict, help_text='as MarkedPlace, by the version before; only read any more'),
                ),
            ],
        ),
        migrations.RunPython(take_over, migrations.RunPython.noop),
    ]
