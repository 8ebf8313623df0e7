"""What a mirror waits for is counted up to some number, in the order in which it was missed."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("mirrors", "0004_jobs")]

    operations = [
        migrations.AddIndex(
            model_name="blocker",
            index=models.Index(
                condition=Q(("gone_at_source", False)), fields=["mirror", "id"], name="blocker_waited_for"
            ),
        ),
        migrations.AddIndex(
            model_name="blocker",
            index=models.Index(
                condition=Q(("damage", True), ("gone_at_source", False)),
                fields=["mirror", "id"],
                name="blocker_damage",
            ),
        ),
    ]
