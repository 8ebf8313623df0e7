"""Our signatures are botocore's, whatever is signed."""

from __future__ import annotations

import datetime
import time
from unittest import mock

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.signing import Signer
from adapters.s3.store import OWN_ONLY

SIGNERS = {"eu-west-1": Signer("eu-west-1")}
NAMES = ["Content-Type", "x-amz-meta-a", "x-amz-copy-source", "range", "X-Amz-Meta-B", *OWN_ONLY]
names = st.sampled_from(NAMES)
values = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=12)


def authorization(headers: dict[str, str]) -> str:
    return {name.lower(): value for name, value in headers.items()}["authorization"]


@given(
    st.sampled_from(["GET", "PUT", "POST", "DELETE", "HEAD"]),
    st.sampled_from(["http://127.0.0.1:7480", "https://s3.amazonaws.com", "http://store.test:80", "https://s:443"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.dictionaries(st.sampled_from(["uploads", "uploadId", "partNumber", "prefix"]), st.text("aé/+ =&~", max_size=5)),
    st.dictionaries(names, values, max_size=4),
    st.binary(max_size=5),
    st.sampled_from(["", "a-token"]),
)
@settings(max_examples=200, deadline=None)
def test_a_signature_is_that_of_botocore(
    method: str, endpoint: str, key: str, query: dict[str, str], headers: dict[str, str], body: bytes, token: str
) -> None:
    url = STORES[endpoint].url("bucket", key, query)
    for _ in range(3):
        request = AWSRequest(method, url, dict(headers), body)
        now = time.time()
        S3SigV4Auth(Credentials("id", "secret", token or None), "s3", "eu-west-1").add_auth(request)
        ours = SIGNERS["eu-west-1"].signed("id", "secret", token, method, url, headers, body)
        if ours["X-Amz-Date"] == request.headers["X-Amz-Date"]:
            break
        assert time.time() - now < 5
    assert authorization(ours) == request.headers["Authorization"]


class Unsigned(S3SigV4Auth):
    """botocore does that itself beside a Content-MD5, over https."""

    def payload(self, request: AWSRequest) -> str:
        return "UNSIGNED-PAYLOAD"


def test_beside_a_content_md5_which_is_signed_the_body_need_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    moment = datetime.datetime.fromtimestamp(1_800_000_000, datetime.UTC).replace(tzinfo=None)
    url, headers, signer = "http://s/b/k", {"content-md5": "CY9rzUYh03PK3k6DJie09g=="}, SIGNERS["eu-west-1"]
    ours = signer.signed("id", "secret", "", "PUT", url, headers, b"test", unsigned=True)
    assert ours["X-Amz-Content-SHA256"] == "UNSIGNED-PAYLOAD"
    assert "SignedHeaders=content-md5;" in authorization(ours)
    request = AWSRequest("PUT", url, dict(headers), b"test")
    with mock.patch("botocore.auth.get_current_datetime", lambda: moment):
        Unsigned(Credentials("id", "secret"), "s3", "eu-west-1").add_auth(request)
    assert authorization(ours) == request.headers["Authorization"]
    alone = signer.signed("id", "secret", "", "PUT", url, {}, b"test", unsigned=True)
    assert alone == signer.signed("id", "secret", "", "PUT", url, {}, b"test"), "nothing would protect it"


STORES = {
    endpoint: FastObjectStore(endpoint=endpoint, force_path_style=True, access_key_id="id", secret_access_key="secret")
    for endpoint in ("http://127.0.0.1:7480", "https://s3.amazonaws.com", "http://store.test:80", "https://s:443")
}


def test_the_key_of_the_day_is_made_anew_for_another_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "gmtime", lambda _: time.struct_time((2026, 11, 21, 23, 59, 59, 5, 325, 0)))
    one = Signer("eu-west-1")
    first, second, again = (one.signed("id", s, "", "GET", "http://s/b", {}, b"") for s in ("a", "b", "a"))
    assert authorization(first) == authorization(again) != authorization(second)
