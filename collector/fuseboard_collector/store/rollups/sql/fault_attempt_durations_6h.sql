-- include fault_sixes of fault_attempt_durations_h
;
