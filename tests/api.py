"""The replication API as a program uses it."""

from __future__ import annotations

import base64
import json
from typing import Any

from django.test import Client

from rbac import services as rbac
from rbac.models import User

MIRRORS = "/service/replication/v1/repositories/lake/mirrors"
BODY = {"name": "lake-eu", "region": "eu-west-1", "storage_namespace": "s3://dst/lake"}


class Api:
    """A program with an access key."""

    def __init__(self, user: User) -> None:
        issued = rbac.key_create(actor="system:tests", user=user)
        pair = f"{issued.key.key_id}:{issued.secret}".encode()
        self.headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        self.client = Client()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = body if isinstance(body, str | bytes) else json.dumps(body) if body is not None else ""
        answer = self.client.generic(method, path, data, content_type="application/json", headers=self.headers)
        return answer.status_code, json.loads(answer.content) if answer.content else None
