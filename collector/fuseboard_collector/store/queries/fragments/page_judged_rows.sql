-- Single calls and what the error rate takes them for.
SELECT *, COALESCE(region, 'unknown') AS place,
       CASE WHEN outcome IN ('cancelled', 'abandoned', 'interrupted') THEN 0 ELSE weight END
           AS judged_weight,
       CASE WHEN outcome IN ('error', 'rejected')
                 AND COALESCE(error_class, 'unclassified') <> 'L1_input'
                 AND @among($classes::VARCHAR[], COALESCE(error_class, 'unclassified'))
            THEN weight ELSE 0 END AS error_weight
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
