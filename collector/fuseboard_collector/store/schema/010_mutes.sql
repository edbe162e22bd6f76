-- How bad an alert got, and alerts that somebody muted.
ALTER TABLE alert_events ADD COLUMN peak DOUBLE;   -- the worst value since it began

-- Append-only: the newest row of an id counts. To unmute is to write one that has ended.
CREATE TABLE mutes (
    id       VARCHAR   NOT NULL,
    set_at   TIMESTAMP NOT NULL,          -- when this row was written
    begins   TIMESTAMP NOT NULL,
    ends     TIMESTAMP NOT NULL,          -- not muted any more from then on
    alert    VARCHAR   NOT NULL,
    severity VARCHAR,                     -- this and what follows: NULL = any
    tool     VARCHAR,
    region   VARCHAR,
    reason   VARCHAR   NOT NULL,
    author   VARCHAR                      -- NULL: not known
);
