"""``fuseboard.toml``: policies per tool, declared by whoever runs the agent."""

from fuseboard.policy.file.policies import PolicyFile, read_policies

__all__ = ["PolicyFile", "read_policies"]
