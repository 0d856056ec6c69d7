"""A zip archive in a gzip layer is opened too."""

import gzip
import os
import tempfile

import pytest

from docs_platform_action.archive.reading import CHUNK_BYTES
from tests.archives import Zipped, zip_of
from tests.folders import open_below
from tests.unit.archive.places import Place


class TestZip:
    def test_may_be_in_gzip_and_leaves_no_trace_of_that(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """A storage with `Content-Encoding: gzip` adds the layer; a zip archive's directory is at its end."""
        monkeypatch.setattr(tempfile, "tempdir", "/nowhere")

        place.unpack(gzip.compress(zip_of(Zipped(content=os.urandom(5 * CHUNK_BYTES)))))

        assert place.tree().keys() == {"index.html"}
        assert open_below(place.root) == []

    def test_in_gzip_that_is_refused_is_closed(self, place: Place) -> None:
        place.refusal(gzip.compress(zip_of(Zipped(), Zipped(name=b"../outside"))))

        assert open_below(place.root) == []
