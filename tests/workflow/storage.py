"""The object storage that workflows upload to: moto's S3, with one bucket."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

BUCKET = "docs-example-com"
AWS_KEY = {"aws_access_key_id": "AKIA-OF-THE-TESTS", "aws_secret_access_key": "aws-s3cret-of-the-tests"}
REGION = "eu-central-1"
S3 = Any  # boto3 defines its clients at run time


@contextmanager
def running_storage() -> Iterator[S3]:
    """Serve S3 with an empty bucket."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name=REGION, **AWS_KEY)
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        yield client
        for name in contents(client):
            client.delete_object(Bucket=BUCKET, Key=name)
        client.delete_bucket(Bucket=BUCKET)
        client.close()
    finally:
        server.stop()


def endpoint(storage: S3) -> dict[str, str]:
    return {"AWS_ENDPOINT_URL": storage.meta.endpoint_url}


def contents(storage: S3) -> dict[str, bytes]:
    found = storage.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return {entry["Key"]: storage.get_object(Bucket=BUCKET, Key=entry["Key"])["Body"].read() for entry in found}
