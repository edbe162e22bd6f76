-- Calls answered with something unusable (L5), in any outcome, over all calls that the caller
-- let finish, ended in (since, until].
WITH calls AS (
    -- include alert_judged_calls
),
counted AS (
    SELECT *, error_class IS NOT DISTINCT FROM 'L5_semantic' AS is_event
    FROM calls
)
-- include alert_share_of_events
