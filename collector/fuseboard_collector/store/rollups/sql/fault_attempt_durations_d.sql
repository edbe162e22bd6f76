-- include fault_days of fault_attempt_durations_6h
;
