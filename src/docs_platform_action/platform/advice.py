"""The likely causes of the API's answers, and what to do."""

from typing import Final

from ..errors import Advice, Forbidden, Rejected

NETWORK: Final = Advice(
    cause="The platform, or the network between it and this runner, is down or overloaded.",
    remedy=(
        "Check the platform's status page and run the workflow again, "
        "or allow more time with `outage-tolerance`."
    ),
)
TOO_MANY: Final = Advice(
    cause="The platform allows fewer requests at once.",
    remedy="Lower `max-parallel`, or raise `poll-interval` or `outage-tolerance`.",
)
NO_STARTS: Final = Advice(
    cause="A limit of exports an hour is used up, or other exports use all the capacity.",
    remedy="Export what failed again later, export fewer sites an hour, or raise `start-timeout`.",
)
EXPLAINED: Final = Advice(cause="", remedy=Rejected.default_remedy)
"""The API's own words are shown, and say why."""

MOVED: Final = Advice(
    cause="",
    remedy="If the API has moved, set `base-url` to its new address. "
    "Otherwise report this to the platform, with the time of the request.",
)
NOT_READY: Final = Advice(
    cause="The platform has not finished the bundle of the completed export.",
    remedy="Allow more time with `outage-tolerance`.",
)
NO_LINK: Final = Advice(
    cause="The platform has not made the bundle of the completed export, or the API has changed.",
    remedy="If a later run fails the same way, report it to the platform.",
)
IN_FRONT: Final = Advice(
    cause=(
        "Bot protection, a gateway or a login page in front of the API responded, "
        "or changed the response."
    ),
    remedy=(
        "Run the workflow again. If it fails the same way, "
        "ask the platform's or network's operator to allow this runner."
    ),
)
WRONG_ADDRESS: Final = Advice(
    cause=f"{IN_FRONT['cause']} Or `base-url` is not the API's own address.",
    remedy="Set `base-url` to the API's own address, and make sure that this runner can reach it.",
)
NOT_THE_API: Final = Advice(
    cause=(
        "The server at `base-url` is not the platform's administrative API, or the API has changed."
    ),
    remedy=(
        "Check `base-url`. If it is right, "
        "report this to the platform with the time of the request."
    ),
)
KEY_ENDED: Final = Advice(
    cause="The key was accepted earlier in this run. It has expired or was deleted since.",
    remedy="Create a new key on the dashboard's API keys page, and store it in the secret that "
    "`admin-key` reads.",
)
KEY_CHANGED: Final = Advice(
    cause="The key was allowed to do so earlier in this run. "
    "Its scope or its addresses were changed since.",
    remedy=Forbidden.default_remedy,
)
ECHOED_KEY: Final = Advice(
    cause="The platform, or something in front of it, copies the admin key into its response.",
    remedy="Report it to the platform, and replace the key.",
)
UNREACHABLE: Final = Advice(
    cause=(
        "`base-url` is mistyped, or the platform or the network between it and this runner is down."
    ),
    remedy="Check `base-url` and the platform's status page, and run the workflow again.",
)
