SELECT *
FROM (
    -- include page_cells
) AS cells
WHERE @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], region)
