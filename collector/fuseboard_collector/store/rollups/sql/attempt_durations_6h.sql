-- include listed_sixes of attempt_durations_h
;
