"""One module per page.

Not named ``pages``: next to the script, Streamlit would take that folder for its older kind of
multipage app, and a first visit by a deep link would get an empty page.
"""
