"""Archives: a file in, a folder out."""
