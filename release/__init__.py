"""The parts of a release that a workflow step cannot say plainly. See RELEASING.md."""
