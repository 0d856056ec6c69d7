"""Numbers of bytes, written for people."""


def size(count: float) -> str:
    """Write a number of bytes with a binary unit and one decimal."""
    if count < 1024:
        return f"{count:.0f} byte{'' if count == 1 else 's'}"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1023.95:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"
