"""The row that is held while a place is given away."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mirrors", "0006_installations")]

    operations = [
        migrations.CreateModel(
            name="PlaceLock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("taken_at", models.DateTimeField(null=True)),
            ],
        ),
    ]
