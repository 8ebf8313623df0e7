"""How many objects a second a mirror that brings its objects itself may bring."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0024_causes'),
    ]

    operations = [
        migrations.AddField(
            model_name='mirror',
            name='copy_objects_per_second',
            field=models.IntegerField(help_text='at most so many are brought; null: any number', null=True),
        ),
    ]
