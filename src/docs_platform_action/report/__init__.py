"""What people and later steps see: the log, outputs, annotations and the summary."""
