-- include listed_sixes of durations_h
;
