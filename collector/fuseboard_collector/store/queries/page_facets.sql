-- The tools and regions seen in the window, most used first: choices of the filters.
-- Bounded, because names come from outside. Parameters: since, until.
WITH calls AS (
    SELECT tool, region, SUM(weight) AS weight
    FROM (
        -- include page_cells
    ) AS cells
    GROUP BY 1, 2
),
facets AS (
    SELECT 'tool' AS facet, tool AS value, SUM(weight) AS calls FROM calls GROUP BY tool
    UNION ALL
    SELECT 'region' AS facet, region AS value, SUM(weight) AS calls FROM calls GROUP BY region
),
ranked AS (
    SELECT facet, value, calls,
           row_number() OVER (PARTITION BY facet ORDER BY calls DESC, value) AS place
    FROM facets
)
SELECT facet, value, calls FROM ranked WHERE place <= 1000 ORDER BY facet, calls DESC, value;
