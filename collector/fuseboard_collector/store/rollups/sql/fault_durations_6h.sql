-- include fault_sixes of fault_durations_h
;
