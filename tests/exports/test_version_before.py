"""The version before works beside the new one on its tables: as it knows them, without the columns that it lacks."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from core.installations.places import Place
from db import clock
from exports.engine import marked_places
from exports.models import Export, ExportRun, ExportVerification, MarkedPlace

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def before() -> Any:
    """The models of exports as the version before knows them."""
    loader = MigrationExecutor(None).loader
    return loader.project_state([("exports", "0009_status_files_as_they_stand")]).apps


def an_export_of(apps: Any) -> Any:
    now = clock.now()
    return apps.get_model("exports", "Export").objects.create(
        region="us-east-1",
        repository="lake",
        branch="main",
        creation_date=1,
        storage_namespace="s3://src/lake",
        path="s3://out/latest",
        created_at=now,
        changed_at=now,
    )


def test_what_it_makes_goes_on_as_it_did(before: Any) -> None:
    made = an_export_of(before)
    run = before.get_model("exports", "ExportRun").objects.create(
        export=made, ref="c", path=made.path, started_at=clock.now()
    )
    looked = before.get_model("exports", "ExportVerification").objects.create(
        export=made, ref="c", path=made.path, started_at=clock.now()
    )
    export = Export.objects.get(pk=made.pk)
    assert (export.manifest, export.actions, export.actions_at_success) == ("always", True, True)
    now = ExportRun.objects.get(pk=run.pk)
    assert (now.actions, now.actions_anew, now.listed, now.repairs_id) == (True, False, None, None)
    assert ExportVerification.objects.get(pk=looked.pk).actions
    made.save()
    run.save()


def test_it_deletes_what_the_new_one_refers_to(before: Any) -> None:
    made = an_export_of(before)
    export = Export.objects.get(pk=made.pk)
    looked = ExportVerification.objects.create(
        export=export, ref="c", path=export.path, started_at=clock.now(), ended_at=clock.now()
    )
    run = ExportRun.objects.create(export=export, ref="c", path=export.path, started_at=clock.now(), repairs=looked)
    export.manifests.create(run=run, uri="s3://out/s/m", size=1, etag="e", written_at=clock.now())
    before.get_model("exports", "ExportVerification").objects.filter(pk=looked.pk).delete()
    run.refresh_from_db()
    assert run.repairs_id == looked.pk
    made.delete()
    connection.check_constraints()
    assert not Export.objects.exists()


def test_markers_that_it_writes_down_are_known_in_each_store(before: Any) -> None:
    old = before.get_model("exports", "MarkedPlace")
    row = old.objects.create(place="s3://out/x", expressions=["d/"])
    assert marked_places.note(Place("s3://out/x", "a"), ["e/"]) == ["d/"]
    found = old.objects.select_for_update().filter(place="s3://out/x").first()
    assert found.pk == row.pk  # of two rows it finds its own
    found.expressions = [*found.expressions, "f/"]
    found.save()
    assert sorted(marked_places.note(Place("s3://out/x", "a"), ["g/"])) == ["d/", "e/", "f/"]
    assert MarkedPlace.objects.filter(place="s3://out/x").count() == 2
