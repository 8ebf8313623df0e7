"""What the sandbox's buckets say of themselves: whither they are replicated, and what is removed there for good.

The replication is the sandbox's own (`sandbox.replication`); nothing removes versions in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from sandbox.s3_backend import SandboxBackend

KEPT_DAYS = 30
XMLNS = "http://s3.amazonaws.com/doc/2006-03-01/"


def declare_rules(backend: SandboxBackend, bucket: str, targets: Sequence[str]) -> None:
    """Lets a bucket say, when asked for its replication, what the sandbox does with it anyway, deletions included; and
    that versions which were deleted go after some days."""
    rules = [
        {"ID": f"to-{target}", "Status": "Enabled", "Destination": {"Bucket": f"arn:aws:s3:::{target}"}}
        for target in targets
    ]
    if rules:
        backend.put_bucket_replication(bucket, {"Role": "arn:aws:iam::1:role/sandbox", "Rule": rules})
    removal = {
        "ID": "remove-what-was-deleted",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "NoncurrentVersionExpiration": {"NoncurrentDays": str(KEPT_DAYS)},
        "Expiration": {"ExpiredObjectDeleteMarker": "true"},
    }
    backend.put_bucket_lifecycle_configuration(bucket, [removal])


def replication(backend: SandboxBackend, method: str, path: str, query: str) -> bytes | None:
    """The answer to GetBucketReplication for a bucket that has rules, None for any other request: moto answers that no
    rule brings delete markers, whatever was declared."""
    found = backend.buckets.get(path.strip("/"))
    asked = method == "GET" and "replication" in dict(parse_qsl(query, keep_blank_values=True))
    declared = getattr(found, "replication", None)  # moto's bucket has none before one is put
    if not asked or not declared:
        return None
    rules = "".join(
        f"<Rule><ID>{escape(rule['ID'])}</ID><Priority>{rule['Priority']}</Priority><Status>{rule['Status']}</Status>"
        "<DeleteMarkerReplication><Status>Enabled</Status></DeleteMarkerReplication><Filter><Prefix/></Filter>"
        f"<Destination><Bucket>{escape(rule['Destination']['Bucket'])}</Bucket></Destination></Rule>"
        for rule in declared["Rule"]
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<ReplicationConfiguration xmlns="{XMLNS}">'
        f"<Role>{escape(declared['Role'])}</Role>{rules}</ReplicationConfiguration>"
    ).encode()
