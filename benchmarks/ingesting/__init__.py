"""The parts of ``ingest.py``: what is sent, who sends it, and who receives it."""
