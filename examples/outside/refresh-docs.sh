#!/bin/sh
# For cron: exports the documentation, and replaces the folder site only after a success. The action's docs/outside-github-actions.md
# has the files that it needs.
set -eu
cd /srv/docs
rm -rf site.new
code=0
docker run --rm --env-file /etc/export-docs.env -e INPUT_SITE_PATH=site.new --volume "$PWD:/workspace" --workdir /workspace \
    ghcr.io/OWNER/docs-platform-action@sha256:DIGEST > export.log 2>&1 || code=$?
if [ "$code" -ne 0 ]; then
    cat export.log >&2 # cron mails what a job prints
    exit "$code"
fi
rm -rf site.old
if [ -d site ]; then
    mv site site.old
fi
mv site.new site
