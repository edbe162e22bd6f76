-- include stepped_days of durations_6h
;
