"""Where a run's work is done, for how long, and by which store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from adapters.s3.store_keys import keys_of
from core.exporting.unit_values import Phase
from db import clock
from deployment import config
from deployment.wiring import clients, executors, export_jobs, region_settings
from exports.engine.run_io import Plane
from exports.engine.time_slice import MARGIN_SECONDS, Slice
from tests.deployment.test_config import SOURCE
from tests.exports.test_pages import a_run, an_export


def tell(monkeypatch: pytest.MonkeyPatch, **told: Any) -> None:
    settings = config.parse(SOURCE | told)
    monkeypatch.setattr(config, "current", lambda: settings)


class FreeLease:
    """Nobody else is there."""

    def lock(self) -> None:
        """It is ours."""


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("told", "here"),
    [({}, True), ({"small_files": 9}, False), ({"small_bytes": 99}, False), ({"small_files": 10}, True)],
)
def test_what_is_small_the_worker_does_by_itself(monkeypatch: Any, told: dict[str, int], here: bool) -> None:
    tell(monkeypatch, exports=told)
    export = an_export()
    run = a_run(export, to_copy=8, to_delete=2, to_copy_bytes=100)
    seen: list[bool] = []
    monkeypatch.setattr(export_jobs, "copy", lambda *_, here, tag: seen.append(here))
    Plane(run, Slice(export, 0.0, clock.now(), 30.0)).work([], Phase.COPY, list)
    assert seen == [here]


@pytest.mark.django_db
def test_a_slice_goes_on_for_as_long_as_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    tell(monkeypatch, exports={"slice": "90s"})
    export, now = an_export(), clock.now()
    piece = Slice.begin(export, FreeLease())  # type: ignore[arg-type]
    assert 89 < piece.deadline - now.timestamp() < 92 and piece.seconds == 90
    export.refresh_from_db()
    assert export.writes_until is not None
    assert export.writes_until - timedelta(seconds=MARGIN_SECONDS) >= now + timedelta(seconds=90)
    piece.end()
    export.refresh_from_db()
    assert export.writes_until is None


def test_a_bucket_has_a_store_of_its_own_if_told(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"access_key_id": "AKIAOTHER", "secret_access_key": "hidden"}
    other = {"endpoint": "http://other:9000", "region": "mars-1", "credentials": keys}
    tell(monkeypatch, export_stores={"company.bucket": other})
    region = config.current().region
    assert clients.export_store(region, "s3://company.bucket/latest").endpoint == "http://other:9000"
    assert clients.export_store(region, "s3://else/latest").endpoint == config.current().store(region).endpoint
    way = region_settings.export_route(region, "s3://company.bucket/latest")
    assert way is not None and (way.bucket_region, way.within, way.crosses) == ("mars-1", False, True)
    own = region_settings.export_route(region, "s3://else/latest")
    assert own is not None and (own.bucket_region, own.within, own.crosses) == (region, True, False)
    assert region_settings.export_route("nowhere", "s3://else/latest") is None
    told = export_jobs.settings(region=region, namespace="s3://src/lake", path="s3://company.bucket/latest")
    assert (told.destination.region, told.destination.endpoint) == ("company.bucket", "http://other:9000")
    assert "hidden" not in repr(told)
    monkeypatch.setenv("LAKEMIRROR_STORES_KEY", executors.executors_key())
    keys = keys_of("company.bucket", told.destination.access)
    assert keys and (keys.access_key_id, keys.secret_access_key) == ("AKIAOTHER", "hidden")
