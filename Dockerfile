# The image that the action runs in. GitHub builds it on the user's runner, the tests with Docker's classic builder, so
# nothing here needs BuildKit, and every step that can be left out costs no user a second.

FROM python:3.13-slim-trixie AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore

# The action's environment, /opt/action, goes into the image; the build backend's, /opt/backend, stays behind. Neither
# holds a pip: the base image's installs into both.
RUN python -m venv --without-pip /opt/backend && \
    python -m venv --without-pip /opt/action

# Before the code, which changes more often than what it needs. Wheels only: no dependency runs code of its own here.
#
# What no run uses is left behind, a third of all: scripts, tests and commands; the parts of urllib3 for a browser and for
# packages that are not here; and what PyYAML and charset-normalizer have compiled, beside modules in Python that do the same.
COPY requirements/build.txt requirements/image.txt /build/requirements/
RUN python -m pip --python /opt/backend install --require-hashes --no-deps --only-binary :all: \
        --requirement /build/requirements/build.txt && \
    python -m pip --python /opt/action install --no-compile --require-hashes --no-deps --only-binary :all: \
        --requirement /build/requirements/image.txt && \
    rm -r /opt/action/.gitignore /opt/action/include && \
    find /opt/action/bin -type f -delete && \
    find /opt/action/lib -depth \( \
        -name tests -o -name cli -o -name _yaml -o -path '*/yaml/*.so' -o -path '*/charset_normalizer/*.so' \
        -o -path '*/urllib3/contrib/emscripten' -o -path '*/urllib3/contrib/[ps]*.py' \) -exec rm -r {} +

COPY pyproject.toml LICENSE /build/
COPY src/docs_platform_action /build/src/docs_platform_action
RUN python -m pip --python /opt/backend wheel --no-index --no-deps --no-build-isolation \
        --wheel-dir /build/dist /build && \
    python -m pip --python /opt/action install --no-compile --no-index --no-deps /build/dist/*.whl

COPY entrypoint.py /opt/action/
# Byte code that is used without a look at the times of its sources, which a layer's journey may change: each run, in a
# container of its own, would then compile everything again.
RUN /opt/action/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/action/lib


FROM python:3.13-slim-trixie

LABEL org.opencontainers.image.title="docs-platform-action" \
      org.opencontainers.image.description="Exports a hosted documentation site, or waits for a documentation agent's job." \
      org.opencontainers.image.licenses="MIT"

COPY --from=build /opt/action /opt/action
# The Python image comes without the standard library's byte code. Importing all of the action once leaves that of the
# modules it uses, and ends the build if one cannot be imported. Python itself imports an encoding when it is first used.
RUN ["/opt/action/bin/python", "-I", "-c", "\
import encodings.unicode_escape, encodings.utf_16_le, encodings.utf_8_sig;\
import importlib, pkgutil, docs_platform_action as action;\
[importlib.import_module(module.name) for module in pkgutil.walk_packages(action.__path__, 'docs_platform_action.')]"]

# There is no USER: the workspace and the files that GitHub reads outputs from belong to the runner, and only root can
# write to them whoever that is (GitHub's documentation asks for root in container actions).
#
# There is no shell in between: it would keep the runner's signals to itself, and drop the inputs with a hyphen in their
# name, such as INPUT_ADMIN-KEY, from the environment. -I keeps the workflow's environment and its workspace out of
# Python's search for modules, -u shows each line of the log when it is written.
ENTRYPOINT ["/opt/action/bin/python", "-I", "-u", "/opt/action/entrypoint.py"]
