"""What the matrix, the hostile texts, the fuzzing, the soak and the kills brought to light in the action."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What went wrong, and the test that failed before it was mended."""

    what: str
    test: str


_DOWNLOAD: Final = "tests/integration/test_download.py::TestLength"

_LEAKS: Final = "tests/integration/test_leaks.py"
_ARCHIVES: Final = "tests/unit/archive/test_unpack.py::TestRefusals::test_say_what_is_wrong_and_leave_what_is_outside_alone"

FINDINGS: Final = (
    Finding(
        what="A login page or JSON in place of the bundle was unpacked, or saved as the bundle, instead of asked for again.",
        test=f"{_DOWNLOAD}::test_a_web_page_is_not_a_bundle",
    ),
    Finding(
        what="A bundle that was there whole was given up when its length had been announced too long.",
        test=f"{_DOWNLOAD}::test_one_that_is_announced_too_long_is_corrected_by_the_storage",
    ),
    Finding(
        what="One byte that is no UTF-8 made an answer none, and with it a job that had just been started was lost.",
        test="tests/unit/api/test_client.py::TestAnswer::test_text_that_is_no_utf_8_spoils_only_its_own_field",
    ),
    Finding(
        what="Each new TLS connection read all public authorities again: 24 ms of CPU.",
        test="tests/integration/test_connections.py::test_no_connection_reads_the_authorities_again",
    ),
    Finding(
        what="A job that timed out at 100 % was told without its status, though an unknown one may be why it never ended.",
        test="tests/unit/jobs/test_polling.py::TestTimedOut::test_it_tells_how_far_the_job_has_come",
    ),
    Finding(
        what="An answer's head was bounded by the line alone: cookies in it held a run for half a minute, past every bound.",
        test="tests/integration/test_bounds.py::test_a_head_that_has_an_end_is_ended_by_its_size_too",
    ),
    Finding(
        what="`ca-bundle` did not count for a proxy over TLS.",
        test="tests/integration/test_environment.py::test_ca_bundle_makes_the_certificate_of_a_proxy_trusted",
    ),
    Finding(
        what="A key that the API echoed in base64 stayed in log, summary and outputs.",
        test=f"{_LEAKS}::test_a_key_that_the_api_echoes_is_left_nowhere",
    ),
    Finding(
        what="A key that the storage said, in its XML or a redirect, got into `results`, and one in an ETag back to it.",
        test=f"{_LEAKS}::test_a_key_that_the_storage_says_is_left_nowhere",
    ),
    Finding(
        what="A redirect of the storage that held the key took it to another host.",
        test=f"{_LEAKS}::test_a_key_in_a_redirect_of_the_storage_goes_to_nobody",
    ),
    Finding(
        what="The name of a file in a refused archive put the key into `results`.",
        test=f"{_LEAKS}::test_a_key_in_the_name_of_a_file_that_is_refused_is_left_nowhere",
    ),
    Finding(
        what="A key in another input was refused as it is, but not percent-encoded or in base64.",
        test=f"{_LEAKS}::test_a_key_in_another_input_is_refused_in_whatever_form",
    ),
    Finding(
        what="Letters without a shape passed into the log, so that a key with one inside looked whole.",
        test="tests/unit/test_text.py::TestClean::test_it_shows_the_text_without_its_teeth",
    ),
    Finding(
        what="An address of mail in a server's text became a link in the summary.",
        test="tests/unit/test_text.py::TestMarkdown::test_an_address_of_mail_is_no_link",
    ),
    Finding(
        what="A key that was pasted into `domain` with a blank or something invisible inside was shown whole in the refusal.",
        test="tests/unit/inputs/test_reader.py::TestRefusals::test_nor_is_one_that_was_pasted_with_something_inside",
    ),
    Finding(
        what="A `ca-bundle` of beginnings without an end took the square of its length in time: hours for 8 MiB.",
        test="tests/unit/inputs/test_validators.py::TestCaBundle::test_one_of_beginnings_alone_is_refused_at_once",
    ),
    Finding(
        what="A link with a backslash or the like in its host: the log named one host, and the request went to another.",
        test="tests/unit/test_models.py::TestBundle::test_without_a_usable_link_it_cannot_be_used",
    ),
    Finding(
        what="A tar file named like a folder, and a volume label, had content that was read as entries, which others do not see.",
        test=_ARCHIVES,
    ),
    Finding(
        what="Empty records of a tar header, and ones without a key, were read in one of the ways in which readers differ.",
        test=_ARCHIVES,
    ),
    Finding(
        what="Parts of killed runs stayed in a workspace that is kept, for ever.",
        test="tests/unit/bundle/test_staging.py::TestAbandonedParts::test_one_older_than_a_day_is_removed",
    ),
)
