-- A derived attempt ends with its call, as in the data file; those before ended as long after its
-- start as it took.
ALTER TABLE derived_attempts MODIFY QUERY
SELECT
    -- include only_attempt
    ,
    version,
    CASE WHEN is_deleted = 0
          -- include only_attempt_is_derived
         THEN 0 ELSE 1 END AS is_deleted
FROM tool_calls;
