"""What a call that was refused needs: the action of lakeFS's policies, or of IAM's, to tell people what to grant."""

from __future__ import annotations

_OF_LAKEFS = {
    "get_repository": "fs:ReadRepository",
    "list_repositories": "fs:ListRepositories",
    "create_repository": "fs:CreateRepository and fs:AttachStorageNamespace",
    "delete_repository": "fs:DeleteRepository",
    "_ask_gc_rules": "retention:GetGarbageCollectionRules",
    "list_branches": "fs:ListBranches",
    "get_branch": "fs:ReadBranch",
    "log_commits": "fs:ListCommits",
    "get_commit": "fs:ReadCommit",
    "create_commit_record": "fs:CreateCommit",
    "create_branch": "fs:CreateBranch",
    "hard_reset_branch": "fs:RevertBranch",
    "reset_branch": "fs:RevertBranch",
    "delete_branch": "fs:DeleteBranch",
    "diff_branch": "fs:ListObjects",
    "list_tags": "fs:ListTags",
    "get_tag": "fs:ReadTag",
    "create_tag": "fs:CreateTag",
    "delete_tag": "fs:DeleteTag",
}
_ALL = "what the policy ReplicationPolicy names"

_OF_S3 = {
    "HeadObject": "s3:GetObject",
    "HeadBucket": "s3:ListBucket",
    "ListObjectsV2": "s3:ListBucket",
    "ListObjectVersions": "s3:ListBucketVersions",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "CopyObject": "s3:PutObject",
    "GetBucketReplication": "s3:GetReplicationConfiguration",
    "GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
}
_OF_METHODS = {"GET": "s3:GetObject", "HEAD": "s3:GetObject", "PUT": "s3:PutObject", "DELETE": "s3:DeleteObject"}


def right_for_call(method: str) -> str:
    """What a call of lakeFS's needs, by the SDK's name for it."""
    return _OF_LAKEFS.get(method, _ALL)


def right_for_request(operation: str) -> str:
    """What a request to S3 needs, by boto3's name for it. Most have the action's own name."""
    return _OF_S3.get(operation, f"s3:{operation}")


def right_for_method(method: str, *, listing: bool) -> str:
    """What a plain HTTP request for an object, or for a list of a bucket's, needs."""
    return "s3:ListBucket" if listing else _OF_METHODS.get(method, "")
