-- As many calls as are asked for took this long; blocks of rows without such are passed over.
AND duration_seconds >= $slow_bound::DOUBLE
