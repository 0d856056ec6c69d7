#!/bin/sh
# Exports the documentation to the folder site, with the action's image. Works in dash, bash and BusyBox. Set DOCS_ADMIN_KEY to the
# platform's admin API key, and replace the image and the addresses; if the platform exports projects, replace INPUT_DOMAIN by
# INPUT_PROJECT_ID with the project's identifier. See the action's docs/outside-github-actions.md.
set -eu
image=ghcr.io/OWNER/docs-platform-action@sha256:DIGEST

# mktemp makes the file with mode 0600. printf is a part of the shell, so the key is in no process list.
settings=$(mktemp)
trap 'rm -f "$settings"' EXIT
printf '%s\n' > "$settings" \
    "INPUT_ADMIN_KEY=$DOCS_ADMIN_KEY" \
    'INPUT_BASE_URL=https://api.example.com' \
    'INPUT_DOMAIN=docs.example.com' \
    'INPUT_SITE_PATH=site' \
    'INPUT_MIN_PAGES=10' \
    'INPUT_MASK_BUNDLE_URL=true' \
    'OUTPUT_ENV_FILE=outputs.env'

rm -rf site outputs.env # of an earlier run
unset failureReason jobId
docker run --rm --env-file "$settings" --volume "$PWD:/workspace" --workdir /workspace "$image" &
client=$!
trap 'kill -TERM "$client" 2>/dev/null || :' INT TERM # docker passes it on to the action, which then ends by itself
code=0
wait "$client" || code=$?
while kill -0 "$client" 2>/dev/null; do # a signal has ended `wait`, but not the action
    code=0
    wait "$client" || code=$?
done

if [ -f outputs.env ]; then
    . ./outputs.env
fi
case "${failureReason:-}" in
    '') ;;
    timeout | unavailable | cancelled) echo "Not finished.${jobId:+ To collect it later, add INPUT_MODE=collect and INPUT_JOB_ID=$jobId}" >&2 ;;
    too-few-pages) echo "Not published: the export has fewer pages than INPUT_MIN_PAGES" >&2 ;;
    *) echo "Failed: $failureReason" >&2 ;;
esac
if [ "$code" -ne 0 ] || [ ! -d site ]; then
    exit "$((code ? code : 1))"
fi

echo "Exported $(find site -name '*.html' | wc -l) pages to site"
