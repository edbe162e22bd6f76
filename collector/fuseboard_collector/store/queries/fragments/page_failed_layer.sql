-- The layer that failed: the first rule that holds. docs/objectives.md explains them.
CASE
    WHEN outcome IN ('error', 'rejected') AND decided = 'fallback' THEN 'fallback'
    WHEN decided = 'breaker' OR rule = 'circuit_open'
         OR decided IS NULL AND tries = 0 AND entered IN ('open', 'isolated') THEN 'breaker'
    WHEN decided = 'limit' THEN 'limit'
    WHEN decided = 'budget' OR rule IN ('budget_exhausted', 'session_budget_exhausted') THEN 'budget'
    WHEN decided = 'pool' OR rule = 'pool_exhausted_matcher'
         OR words LIKE '%PoolTimeout%' OR words LIKE '%PoolExhausted%' THEN 'pool'
    WHEN decided = 'timeout' OR rule = 'attempt_timeout'
         OR words LIKE '%Timeout%' OR words LIKE '%TimedOut%' OR words LIKE '%DeadlineExceeded%'
         OR status IN (408, 504) THEN 'timeout'
    WHEN decided = 'serialization' OR rule = 'malformed_data_matcher'
         OR words LIKE '%JSONDecodeError%' OR words LIKE '%UnicodeDecodeError%' THEN 'serialization'
    WHEN decided = 'validation' OR class_of_call = 'L5_semantic' OR outcome = 'partial'
        THEN 'validation'
    WHEN decided = 'retry' OR tries >= 2 THEN 'retry'
    ELSE 'tool'
END
