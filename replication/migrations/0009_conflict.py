from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("replication", "0008_deletes")]

    operations = [
        migrations.AddField(
            model_name="rule",
            name="conflict",
            field=models.CharField(
                choices=[("source", "source"), ("newest", "newest")],
                db_default="source",
                default="source",
                help_text="whose object stays where source and target differ; it never changes",
                max_length=8,
            ),
        ),
    ]
