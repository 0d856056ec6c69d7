"""Messages show long names in part."""

from tests.archives import entry, pax, tar_of
from tests.unit.archive.places import Place, message_of


class TestRefusals:
    def test_show_both_ends_of_a_long_name(self, place: Place) -> None:
        name = b"../beginning" + b"-" * 10_000 + b"end"

        refusal = message_of(place.refusal(tar_of(pax(path=name), entry(b"a"))))

        assert "'../beginning--" in refusal
        assert "--end'" in refusal
        assert len(refusal) < 300

    def test_show_both_ends_of_a_name_that_is_long_in_characters_alone(self, place: Place) -> None:
        assert "…" in message_of(place.refusal(tar_of(pax(path=b"../" + b"x" * 200), entry(b"a"))))
