"""Panels: their general shapes, and one function per subject."""
