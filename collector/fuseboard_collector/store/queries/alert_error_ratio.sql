-- Failed calls (L1 apart) over all calls that the caller let finish, ended in (since, until].
WITH calls AS (
    -- include alert_judged_calls
),
counted AS (
    SELECT *,
        outcome IN ('error', 'rejected')
            AND error_class IS DISTINCT FROM 'L1_input' AS is_event
    FROM calls
)
-- include alert_share_of_events
