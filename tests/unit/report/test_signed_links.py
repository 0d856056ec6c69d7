"""The secrets in a link are found, and nothing else is."""

import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.report.signed_links import MAX_LINK_LENGTH, secrets_of

JOB = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
HEX = "7d3c9a41f0b2e8d65c1a90ff3e4b7a28"
LINK = "https://storage.example.com/b.tar.gz?"
AWS = {
    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
    "X-Amz-Credential": "AKIAIOSFODNN7EXAMPLE/20240601/eu-central-1/s3/aws4_request",
    "X-Amz-Date": "20240601T120000Z",
    "X-Amz-Expires": "3600",
    "X-Amz-Security-Token": "IQoJb3JpZ2luX2VjEAoaDGV1LXdlc3QtMSJ+/=",
    "X-Amz-SignedHeaders": "host;x-amz-meta-origin-of-request",
    "X-Amz-Signature": HEX * 2,
    "response-content-disposition": 'attachment; filename="docs-example-com-2024-06-01.tar.gz"',
    "response-content-type": "application/x-gzip-compressed",
    "x-id": "GetObject",
}
SIGNERS: dict[str, tuple[dict[str, str], set[str]]] = {
    "AWS signature 4": (AWS, {"X-Amz-Credential", "X-Amz-Security-Token", "X-Amz-Signature"}),
    "AWS signature 2": (
        {"AWSAccessKeyId": "AKIAIOSFODNN7EXAMPLE", "Expires": "1717243200", "Signature": "vjbyPxybdZaNmGa%2ByT272YEAiv4="},
        {"AWSAccessKeyId", "Signature"},
    ),
    "Google": (
        {
            "X-Goog-Algorithm": "GOOG4-RSA-SHA256",
            "X-Goog-Credential": "signer@a-project-2024.iam.gserviceaccount.com/20240601/auto/storage/goog4_request",
            "X-Goog-Date": "20240601T120000Z",
            "X-Goog-Expires": "3600",
            "X-Goog-SignedHeaders": "host",
            "X-Goog-Signature": HEX * 4,
        },
        {"X-Goog-Credential", "X-Goog-Signature"},
    ),
    "Google, old": (
        {"GoogleAccessId": "signer@a-project.iam.gserviceaccount.com", "Expires": "1717243200", "Signature": "a+b/c=="},
        {"GoogleAccessId", "Signature"},
    ),
    "Azure": (
        {
            "sv": "2022-11-02",
            "sr": "b",
            "sp": "r",
            "spr": "https",
            "st": "2024-06-01T11:00:00Z",
            "sks": "b",
            "se": "2024-06-01T12:00:00Z",
            "skt": "2024-06-01T11:00:00Z",
            "ske": "2024-06-08T11:00:00Z",
            "skv": "2022-11-02",
            "skoid": "11111111-2222-3333-4444-555555555555",
            "sktid": "66666666-7777-8888-9999-000000000000",
            "sig": "Zm9v+YmFy/YmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE=",
        },
        {"skoid", "sktid", "sig"},
    ),
    "CloudFront": (
        {"Expires": "1717243200", "Policy": "eyJTdGF0ZW1lbnQiOlt7__", "Signature": "Abc-d~Ef_", "Key-Pair-Id": "K2JCJMDEHXQW5F"},
        {"Policy", "Signature", "Key-Pair-Id"},
    ),
    "Cloudflare": ({"verify": "1717243200-QmFzZTY0TWFj%3D"}, {"verify"}),
    "Akamai": ({"hdnea": "exp=1717243200~acl=/exports/*~hmac=0f1e2d3c4b5a6978"}, {"hdnea"}),
    "Alibaba": (
        {"OSSAccessKeyId": "LTAI5tEXAMPLE", "Expires": "1717243200", "Signature": "Zg2mNQ4%3D", "security-token": "CAISdummy"},
        {"OSSAccessKeyId", "Signature", "security-token"},
    ),
    "nginx": ({"md5": "_e4Nc3iduzkWRm01TBBNYw", "expires": "1717243200"}, {"md5"}),
}
SECRET_NAMES = [
    *("token", "access_token", "accessToken", "auth", "authorization", "api_key", "apikey", "api-key", "secret", "client_secret"),
    *(
        "password",
        "sig",
        "signature",
        "x-signature",
        "hmac",
        "jwt",
        "hdnts",
        "__token__",
        "Sign",
        "MD5",
        "q-signature",
        "credential",
    ),
]
PLAIN = {
    "domain": "docs.my-company-2024-site.example.com",
    "job": JOB,
    "other": f"se_{JOB}",
    "path": f"exports/docs.example.com/{JOB}/bundle-2024-06-01.v1.2.3-rc4.build5.tar.gz",
    "key": "exports/docs.example.com/bundle.tar.gz",
    "version": "v1.2.3-rc4.build5",
    "expiresAt": "2024-06-01T12:00:00.123456+02:00",
    "expires": "Sat, 01 Jun 2024 12:00:00 GMT",
    "at": "1717243200000",
    "author": "somebody-with-a-long-name",
    "operation": "GetStaticExportBundleForJob",
    "x-id": "GetObject,bundle",
    "tokens": "12",
}


def encoded(values: dict[str, str]) -> str:
    return LINK + "&".join(f"{name}={urllib.parse.quote(value, safe='')}" for name, value in values.items())


def values_in(url: str) -> set[str]:
    return {secret.value for secret in secrets_of(url)}


@pytest.mark.parametrize("signer", SIGNERS)
def test_of_a_signed_link_the_credentials_and_the_signature_are_secret_and_nothing_else_is(signer: str) -> None:
    parameters, secret = SIGNERS[signer]

    found = secrets_of(encoded(parameters))

    assert {parameters[name] for name in secret} <= {urllib.parse.unquote(each.value) for each in found}
    assert {each.name for each in found} - {"hmac"} == secret


@pytest.mark.parametrize("name", SECRET_NAMES)
@pytest.mark.parametrize("value", ["a", "abc123", JOB, "a" * 40])
def test_a_parameter_with_a_secret_name_is_secret_at_any_length(name: str, value: str) -> None:
    assert value in values_in(f"{LINK}x=1&{name}={value}")


@pytest.mark.parametrize(("name", "value"), PLAIN.items())
def test_domains_jobs_dates_and_files_are_not_secret(name: str, value: str) -> None:
    assert values_in(f"{LINK}{name}={urllib.parse.quote(value, safe='')}") == set()


@pytest.mark.parametrize(
    "value", [HEX, HEX * 2, "QmFzZTY0IG9mIHNvbWV0aGluZyByYW5kb20", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4"]
)
@pytest.mark.parametrize("name", ["x", "something"])
def test_a_long_random_value_is_secret_under_any_name(name: str, value: str) -> None:
    assert value in values_in(f"{LINK}domain=docs.example.com&{name}={value}")


@pytest.mark.parametrize("value", ["abcdef1234", HEX, "Zm9vYmFyYmE=", "Zm9vYmFyYmFyMTI=="])
def test_a_query_without_a_name_is_secret(value: str) -> None:
    assert value in values_in(LINK + value)


@pytest.mark.parametrize(
    "flag", ["download", "raw", "response-content-type=", "X-Amz-Signature=", "20240601", "bundle.tar.gz", ""]
)
def test_a_parameter_without_a_value_is_not_secret(flag: str) -> None:
    assert values_in(LINK + flag) == set()


def test_the_password_of_a_link_is_secret() -> None:
    assert values_in("https://user:pass-w0rd@storage.example.com/b?x=1") == {"pass-w0rd"}


def test_the_key_of_a_credential_is_secret_without_its_scope() -> None:
    assert "AKIAIOSFODNN7EXAMPLE" in values_in(encoded(AWS))


def test_a_field_of_a_token_with_a_secret_name_is_secret() -> None:
    found = values_in(encoded(SIGNERS["Akamai"][0]))

    assert "0f1e2d3c4b5a6978" in found
    assert "1717243200" not in found


def test_the_secrets_of_a_link_within_a_link_are_secret() -> None:
    inner = f"https://storage.example.com/b?domain=docs.example.com&sig={HEX}"

    found = values_in(f"https://gateway.example.com/?to={urllib.parse.quote(inner, safe='')}")

    assert HEX in found
    assert not any("docs.example.com" in value for value in found)


@given(st.text(st.sampled_from("abZ019-._~%2F3D&;=?:/+#@[]"), max_size=80))
def test_any_query_is_read(query: str) -> None:
    assert all(secret.value for secret in secrets_of(LINK + query))


@pytest.mark.parametrize("link", [f"{LINK}x=1&sig={'aB3' * 10**6}", f"https://user:{'aB3' * 10**6}@s.example.com/b?sig={HEX}"])
def test_of_a_huge_link_a_bounded_part_is_searched(link: str) -> None:
    assert MAX_LINK_LENGTH / 2 < sum(map(len, values_in(link))) <= 2 * MAX_LINK_LENGTH
