AND attempts = 1
AND outcome NOT IN ('error', 'rejected', 'degraded')
AND coalesce(layer, 'tool') NOT IN ('retry', 'fallback')
