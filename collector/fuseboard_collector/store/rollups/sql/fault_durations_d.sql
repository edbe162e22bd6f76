-- include fault_days of fault_durations_6h
;
