"""One file per command; each turns options into a call and errors into messages."""
