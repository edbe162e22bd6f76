"""Rollups: what long windows are answered from, kept equal to the raw rows."""
