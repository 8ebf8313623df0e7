from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("installations", "0003_certificates"),
    ]

    operations = [
        migrations.AlterField(
            model_name="installation",
            name="lakefs_endpoint",
            field=models.CharField(blank=True, help_text="empty: a store alone", max_length=1000),
        ),
        migrations.AlterField(
            model_name="installation",
            name="lakefs_access_key_id",
            field=models.CharField(blank=True, max_length=1000),
        ),
        migrations.AlterField(
            model_name="installationtest",
            name="reachable",
            field=models.BooleanField(help_text="lakeFS answered; where there is none, the store did"),
        ),
    ]
