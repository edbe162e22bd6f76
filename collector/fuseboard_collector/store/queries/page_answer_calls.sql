-- Single calls with such answers, newest first, without payloads. outcomes and sources keep some of
-- them (source 'unknown': none that stands in), classifiers those whose fault these judged; NULL = any.
-- Parameters: since, until, tools, classes, regions, outcomes, sources, classifiers,
-- row_limit (at most 1000).
SELECT "end", tool, place AS region, outcome, result_source, result_age_seconds, confidence,
       fallback_tool, partial_failures, error_class, error_type, cause_type, classifier_id,
       @cut(error_message, 200) AS error_message, layer, breaker_state, attempts,
       duration_seconds, args_hash, upstream, trace_id, span_id
FROM (
    -- include page_stand_ins
) AS stand_ins
WHERE @among($outcomes::VARCHAR[], outcome)
  AND @among($sources::VARCHAR[],
             CASE WHEN result_source IN ('cache', 'fallback', 'default') THEN result_source
                  ELSE 'unknown' END)
  AND @among($classifiers::VARCHAR[], classifier_id)
ORDER BY "end" DESC, span_id
LIMIT least($row_limit::BIGINT, 1000);
