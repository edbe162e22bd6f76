-- The time before which a share of all rows came that retention deletes.
WITH arrived AS (
    SELECT received_at AS t FROM tool_calls
    UNION ALL SELECT received_at FROM attempt_rows
    UNION ALL SELECT received_at FROM breaker_transitions
    UNION ALL SELECT received_at FROM heartbeats
    UNION ALL SELECT received_at FROM spans
    UNION ALL SELECT received_at FROM sightings
    UNION ALL SELECT time FROM alert_events
)
-- A step further, so that something goes where all came at one instant.
SELECT make_timestamp(approx_quantile(epoch_us(t), CAST($share::DOUBLE AS FLOAT)) + 1) AS before FROM arrived;
