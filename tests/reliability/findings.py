"""The defects of the action that the matrix, the hostile texts, the fuzzing, the soak, the kills and attacks found."""

from typing import Final

FINDINGS: Final = (
    "A login page or JSON in place of the bundle was unpacked or saved as the bundle, instead of being requested again.",
    "One byte that was not UTF-8 made a response unreadable, and so a started job was lost.",
    "Each new TLS connection loaded all public authorities again, which took 24 ms of CPU time.",
    "A job that timed out at 100 % was reported without its status, although an unknown status may be the cause.",
    "Only single lines of a response's head were limited: cookies could block a run for half a minute.",
    "`ca-bundle` did not apply to a proxy over TLS.",
    "A key that the API echoed in base64 stayed in log, summary and outputs.",
    "A redirect from the storage that contained the key was followed to another host.",
    "The name of a file in a rejected archive could put the key into `results`.",
    "A key in another input was rejected, but not if it was percent-encoded or in base64.",
    "Invisible letters got into the log, so that a key with one inside looked complete.",
    "An email address in a server's text became a link in the summary.",
    "A `ca-bundle` of `BEGIN` lines without an end took quadratic time: hours for 8 MiB.",
    "With a backslash or similar in a link's host, the log named one host, and another got the request.",
    "The quota of one domain, a 429 with a long `Retry-After`, blocked the requests of the others: the run never ended.",
    "Lookups of names were outside all time limits: with silent name servers, a request of 2 s took a minute.",
    "A chunk of negative size made the action read without a limit.",
    "A second, unsolicited response was read as the response to the next request, also of another domain.",
    "Half a body without a length, cut off without the end of TLS, was taken for a whole one.",
    "A bundle that was replaced by one of the same length during its download was completed with bytes of the other.",
    "16 characters that the key shared with a job id or a link were replaced before the value was used.",
    "With several domains, each new status was kept: gigabytes in hours, and a log of that size.",
    "A cookie whose date has thousands of digits printed a library's warning with a stack trace.",
)
