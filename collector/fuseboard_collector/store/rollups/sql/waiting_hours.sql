SELECT COUNT(DISTINCT span) FROM dirty_spans WHERE hours = 1;
