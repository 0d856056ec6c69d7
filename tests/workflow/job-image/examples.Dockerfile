# What the jobs of the examples and of CI run in: what they call, as GitHub's own machines have it, and the tests' chart.
FROM python:3.13-slim-trixie

# No versions: Debian keeps the latest of a release only, and the tests need these programs, not one version of them.
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install --yes --no-install-recommends apache2 ca-certificates curl git jq make nginx njs && \
    rm -rf /var/lib/apt/lists/*

COPY requirements/examples.txt /requirements/
RUN python -m pip install --no-cache-dir --disable-pip-version-check --root-user-action ignore \
        --require-hashes --no-deps --only-binary :all: --requirement /requirements/examples.txt

COPY node_modules /usr/local/lib/node_modules
COPY tests/workflow/job-image/gh tests/workflow/job-image/npx /usr/local/bin/

COPY tests/workflow/chart /chart
