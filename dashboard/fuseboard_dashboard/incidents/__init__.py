"""Incidents: what happened in a window, as one timeline, a summary and a report in Markdown."""
