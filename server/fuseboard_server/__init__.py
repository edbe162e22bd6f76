"""The composition root: the command line, the server, the demo and the doctor."""
