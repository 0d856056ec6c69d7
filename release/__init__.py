"""The parts of a release that are code: checks, the pinned action.yml, the tag, the notes. See RELEASING.md."""
