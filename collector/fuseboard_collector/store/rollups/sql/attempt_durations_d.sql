-- include stepped_days of attempt_durations_6h
;
