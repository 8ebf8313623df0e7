"""What was brought to a store says nothing of another one: a run and a success know theirs."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('exports', '0011_places_of_a_store'),
    ]

    operations = [
        migrations.AddField(
            model_name='export',
            name='store_at_success',
            field=models.CharField(blank=True, help_text="the host of that place's store; null: nobody knows", max_length=300, null=True),
        ),
        migrations.AddField(
            model_name='exportrun',
            name='store',
            field=models.CharField(blank=True, help_text="the host of the path's store; null: nobody knows", max_length=300, null=True),
        ),
    ]
