"""Who asked for all that is missing, where somebody else asks for something later. Older versions leave it alone."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mirrors', '0037_deletions_counted'),
    ]

    operations = [
        migrations.AddField(
            model_name='mirror',
            name='bring_all_by',
            field=models.CharField(blank=True, db_default='', default='', help_text='who that was', max_length=150),
        ),
    ]
