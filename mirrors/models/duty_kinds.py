"""The kinds of recurring work that mirrors bring, as they stand in the table of duties."""

from __future__ import annotations

from django.db import models


class MirrorDuty(models.TextChoices):
    """SENSE looks at a source repository, whoever mirrors it; the others are about a mirror each."""

    MANAGE = "manage"
    SENSE = "sense"
    COPY_RECORDS = "copy"
    VALIDATE = "validate"
    PROMOTE = "promote"
    SWEEP = "sweep"
