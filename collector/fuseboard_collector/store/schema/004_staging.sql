-- Traces with foreign spans that came after the trace was assembled, or before it ever was: what is
-- still to do after a crash. Marked in the transaction that brings the spans, unmarked in the one
-- that stores what the trace comes to.
CREATE TABLE staged_traces (
    trace_id VARCHAR   NOT NULL,
    since    TIMESTAMP NOT NULL             -- no span that was not assembled yet arrived earlier
);
