"""A zip archive in a gzip layer is opened too."""

import gzip
import os
import tempfile
from pathlib import Path

import pytest

from docs_platform_action.archive.reading import CHUNK_BYTES
from tests.archives import Zipped, zip_of
from tests.unit.archive.places import Place


class TestZip:
    def test_may_be_in_gzip_and_leaves_no_trace_of_that(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """A storage with `Content-Encoding: gzip` adds the layer; a zip archive's directory is at its end."""
        monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
        descriptors = len([*Path("/proc/self/fd").iterdir()])

        place.unpack(gzip.compress(zip_of(Zipped(content=os.urandom(5 * CHUNK_BYTES)))))

        assert place.tree().keys() == {"index.html"}
        assert len([*Path("/proc/self/fd").iterdir()]) == descriptors

    def test_in_gzip_that_is_refused_is_closed(self, place: Place) -> None:
        descriptors = len([*Path("/proc/self/fd").iterdir()])

        place.refusal(gzip.compress(zip_of(Zipped(), Zipped(name=b"../outside"))))

        assert len([*Path("/proc/self/fd").iterdir()]) == descriptors
