-- Attempts that have no span of their own follow from their calls; a call that is replaced or
-- deleted, or needed several attempts, takes the derived one back.
CREATE MATERIALIZED VIEW IF NOT EXISTS derived_attempts TO attempts AS
SELECT
    -- include only_attempt
    ,
    version,
    CASE WHEN is_deleted = 0
          -- include only_attempt_is_derived
         THEN 0 ELSE 1 END AS is_deleted
FROM tool_calls;
