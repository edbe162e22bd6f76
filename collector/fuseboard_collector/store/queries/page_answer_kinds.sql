-- Answers by where they came from, how far they can be trusted, and what was served instead, with how
-- many tools they are of. Parameters: since, until, tools, classes, regions.
SELECT outcome, result_source, confidence, fallback_tool, SUM(weight) AS calls,
       COUNT(DISTINCT tool) AS tools, MAX("end") AS last_end
FROM (
    -- include page_stand_ins
) AS stand_ins
GROUP BY 1, 2, 3, 4
ORDER BY calls DESC, 1, 2, 3, 4
LIMIT 500;
