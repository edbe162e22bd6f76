UNION ALL
SELECT span + INTERVAL 1 MICROSECOND AS moment, last_end, framework, instrumentation, tool,
       region, outcome, error_class, weight, weight_attempted,
       weight_retried, weight_first, attempts_sum, attempt_sum, backoff_sum, duration_sum,
       duration_max
FROM (SELECT * FROM calls_h
      -- include page_of_hours
      -- include page_with_sixes of calls_6h by *
      -- include page_with_days of calls_d by *
     ) AS rolled
