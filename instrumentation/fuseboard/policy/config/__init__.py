"""What a policy may say, with the defaults; checked when it is written, not when it is needed."""

from fuseboard.policy.config.breaker import Breaker
from fuseboard.policy.config.budget import Budget
from fuseboard.policy.config.cache import Cache
from fuseboard.policy.config.fallback import Fallback
from fuseboard.policy.config.feedback import Feedback, Mistake
from fuseboard.policy.config.limit import Limit
from fuseboard.policy.config.policy import Policy
from fuseboard.policy.config.poll import Pending, Poll
from fuseboard.policy.config.repeats import Repeats
from fuseboard.policy.config.retry import Retry
from fuseboard.policy.config.validation import Validation

__all__ = [
    "Breaker",
    "Budget",
    "Cache",
    "Fallback",
    "Feedback",
    "Limit",
    "Mistake",
    "Pending",
    "Policy",
    "Poll",
    "Repeats",
    "Retry",
    "Validation",
]
