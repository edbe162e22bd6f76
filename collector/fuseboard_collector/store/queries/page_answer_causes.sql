-- What kept degraded and partial answers from being whole: the fault that was handled, and the state
-- of the breaker when the call came. Parameters: since, until, tools, classes, regions.
SELECT outcome, error_class, classifier_id, error_type, cause_type, layer, breaker_state,
       SUM(weight) AS calls, COUNT(DISTINCT tool) AS tools, COUNT(DISTINCT place) AS regions,
       MAX("end") AS last_end
FROM (
    -- include page_stand_ins
) AS stand_ins
WHERE outcome IN ('degraded', 'partial')
GROUP BY 1, 2, 3, 4, 5, 6, 7
ORDER BY calls DESC, 1, 2, 3, 4, 5, 6, 7
LIMIT 200;
