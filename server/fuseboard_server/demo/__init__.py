"""The demo: an agent that plans trips, the services it calls, and a scenario of their faults.

Nothing on the board is invented. ``agent`` is a process that calls ``backend`` over HTTP and
``advisory_server`` over MCP, through the shim; ``scenario.toml`` says when which service fails.
"""
