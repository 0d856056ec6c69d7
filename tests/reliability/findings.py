"""The defects of the action that the matrix, the hostile texts, the fuzzing, the soak, the kills and attacks found."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A defect, and the test that failed before it was fixed."""

    what: str
    test: str


_DOWNLOAD: Final = "tests/integration/test_download.py::TestLength"

_LEAKS: Final = "tests/integration/test_leaks.py"
_ARCHIVES: Final = "tests/unit/archive/test_unpack.py::TestRefusals::test_say_what_is_wrong_and_leave_what_is_outside_alone"

FINDINGS: Final = (
    Finding(
        what="A login page or JSON in place of the bundle was unpacked or saved as the bundle, instead of being requested again.",
        test=f"{_DOWNLOAD}::test_a_web_page_is_not_a_bundle",
    ),
    Finding(
        what="A complete bundle was rejected when its announced length was too long.",
        test=f"{_DOWNLOAD}::test_a_bundle_with_a_content_length_that_is_too_long_is_accepted",
    ),
    Finding(
        what="One byte that was not UTF-8 made a response unreadable, and so a started job was lost.",
        test="tests/unit/api/test_client.py::TestAnswer::test_invalid_utf_8_spoils_only_its_own_field",
    ),
    Finding(
        what="Each new TLS connection loaded all public authorities again, which took 24 ms of CPU time.",
        test="tests/integration/test_connections.py::test_connections_do_not_load_the_authorities_again",
    ),
    Finding(
        what="A job that timed out at 100 % was reported without its status, although an unknown status may be the cause.",
        test="tests/wording/test_pages.py::test_the_page_has_the_sentences_of_the_package",
    ),
    Finding(
        what="Only single lines of a response's head were limited: cookies could block a run for half a minute.",
        test="tests/integration/test_bounds.py::test_a_large_complete_head_is_aborted_at_the_size_limit",
    ),
    Finding(
        what="`ca-bundle` did not apply to a proxy over TLS.",
        test="tests/integration/test_environment.py::test_ca_bundle_makes_the_certificate_of_a_proxy_trusted",
    ),
    Finding(
        what="A key that the API echoed in base64 stayed in log, summary and outputs.",
        test=f"{_LEAKS}::test_a_key_that_the_api_echoes_does_not_leak",
    ),
    Finding(
        what="A key that the storage echoed in XML or a redirect got into `results`, and a key in an ETag was sent back.",
        test=f"{_LEAKS}::test_a_key_that_the_storage_echoes_does_not_leak",
    ),
    Finding(
        what="A redirect from the storage that contained the key was followed to another host.",
        test=f"{_LEAKS}::test_a_key_in_a_redirect_is_not_sent_to_another_host",
    ),
    Finding(
        what="The name of a file in a rejected archive could put the key into `results`.",
        test=f"{_LEAKS}::test_a_key_in_the_name_of_a_rejected_file_does_not_leak",
    ),
    Finding(
        what="A key in another input was rejected, but not if it was percent-encoded or in base64.",
        test=f"{_LEAKS}::test_a_key_in_another_input_is_rejected_in_every_encoding",
    ),
    Finding(
        what="Invisible letters got into the log, so that a key with one inside looked complete.",
        test="tests/unit/test_text.py::TestClean::test_it_shows_the_text_without_its_teeth",
    ),
    Finding(
        what="An email address in a server's text became a link in the summary.",
        test="tests/unit/test_text.py::TestMarkdown::test_an_email_address_is_not_a_link",
    ),
    Finding(
        what="A key pasted into `domain` with white space or invisible characters inside was shown in the input error.",
        test="tests/unit/inputs/test_reader.py::TestRefusals::test_nor_is_one_that_was_pasted_with_something_inside",
    ),
    Finding(
        what="A `ca-bundle` of `BEGIN` lines without an end took quadratic time: hours for 8 MiB.",
        test="tests/unit/inputs/test_validators.py::TestCaBundle::test_one_of_beginnings_alone_is_refused_at_once",
    ),
    Finding(
        what="With a backslash or similar in a link's host, the log named one host, and another got the request.",
        test="tests/unit/test_models.py::TestBundle::test_without_a_usable_link_it_cannot_be_used",
    ),
    Finding(
        what="The content of a tar file named like a folder, and of a volume label, was read as entries, unlike by other tools.",
        test=_ARCHIVES,
    ),
    Finding(
        what="Records of a tar header that were empty or had no key were accepted, although readers interpret them differently.",
        test=_ARCHIVES,
    ),
    Finding(
        what="Temporary files of killed runs stayed in a kept workspace forever.",
        test="tests/unit/bundle/test_staging.py::TestAbandonedParts::test_one_older_than_a_day_is_removed",
    ),
    Finding(
        what="The quota of one domain, a 429 with a long `Retry-After`, blocked the requests of the others: the run never ended.",
        test="tests/fuzz/test_several_domains.py::TestOfOneDomainForAnother::test_a_quota_ends_after_the_tolerance",
    ),
    Finding(
        what="Lookups of names were outside all time limits: with silent name servers, a request of 2 s took a minute.",
        test="tests/integration/test_addresses.py::TestNames::test_a_run_ends_although_the_name_servers_are_silent",
    ),
    Finding(
        what="A chunk of negative size made the action read without a limit.",
        test="tests/integration/test_connections.py::test_a_run_reads_little_of_a_chunk_of_negative_size",
    ),
    Finding(
        what="A second, unsolicited response was read as the response to the next request, also of another domain.",
        test="tests/integration/test_connections.py::TestLeftovers::test_no_job_reads_what_came_behind_the_response_of_another",
    ),
    Finding(
        what="Half a body without a length, cut off without the end of TLS, was taken for a whole one.",
        test="tests/integration/test_tls.py::TestEnd::test_half_a_bundle_is_not_saved",
    ),
    Finding(
        what="A bundle that was replaced by one of the same length during its download was completed with bytes of the other.",
        test="tests/integration/test_download.py::TestValidator::test_any_other_part_starts_the_download_again",
    ),
    Finding(
        what="16 characters that the key shared with a job id or a link were replaced before the value was used.",
        test=f"{_LEAKS}::TestJobIdRelatedToTheKey::test_it_is_requested_shown_and_handed_on_unchanged",
    ),
    Finding(
        what="The signature of a link was shown if a server repeated it in escapes, base64, hex or lower case.",
        test=f"{_LEAKS}::test_a_links_signature_is_hidden_in_every_encoding",
    ),
    Finding(
        what="With several domains, each new status was kept: gigabytes in hours, and a log of that size.",
        test="tests/unit/test_scale.py::test_new_statuses_for_hours_do_not_fill_the_log",
    ),
    Finding(
        what="A pipe without a reader as the file for outputs or the summary blocked the run and its cancel.",
        test="tests/integration/test_cancel.py::test_while_nobody_reads_the_pipes_for_outputs_and_summary",
    ),
    Finding(
        what="A cookie whose date has thousands of digits printed a library's warning with a stack trace.",
        test="tests/integration/test_debug.py::test_cookies_are_not_read",
    ),
)
