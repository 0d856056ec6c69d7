# What the jobs of the examples and of CI run in: what they call, as GitHub's own machines have it, and the tests' chart.
FROM python:3.13-slim-trixie

# No versions: Debian keeps the latest of a release only, and the tests need these programs, not one version of them.
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install --yes --no-install-recommends ca-certificates curl git jq make nginx && \
    rm -rf /var/lib/apt/lists/*

COPY requirements/examples.txt /requirements/
RUN python -m pip install --no-cache-dir --disable-pip-version-check --root-user-action ignore \
        --require-hashes --no-deps --only-binary :all: --requirement /requirements/examples.txt

# gh only connects to GitHub, so this one prints its arguments, and the hash of its token, which the log masks.
# The script expands its variables, not the build.
# hadolint ignore=SC2016
RUN printf '#!/bin/sh\necho "asked of gh: $*"\necho "token of gh: $(printf %%s "$GH_TOKEN" | sha256sum)"\n' > /usr/local/bin/gh && \
    chmod 755 /usr/local/bin/gh

COPY tests/workflow/chart /chart
