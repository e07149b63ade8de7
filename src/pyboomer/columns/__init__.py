"""Columns are X made ready for an engine: sorted, sparse or binned, with categories as codes."""
