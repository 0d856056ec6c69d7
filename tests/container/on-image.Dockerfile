# The action's image with what the tests need beside it. The action and its dependencies stay those of the image.
ARG ACTION

FROM python:3.13-slim-trixie AS tools
RUN python -m venv --without-pip /opt/action
COPY dev.txt /
RUN python -m pip --python /opt/action install --quiet --no-compile --no-cache-dir --require-hashes --no-deps \
        --only-binary :all: --requirement /dev.txt

FROM ${ACTION}
COPY --from=tools /opt/action/bin /opt/action/bin
COPY --from=tools /opt/action/lib/python3.13/site-packages /opt/tools
# Behind the image's own packages, so that these are found first.
RUN printf '/opt/tools\n/repository/src\n' > /opt/action/lib/python3.13/site-packages/tools.pth
