-- How bad an alert got, and alerts that somebody muted.
ALTER TABLE alert_events ADD COLUMN IF NOT EXISTS peak Nullable(Float64);

-- Append-only: the newest row of an id counts. They are few; retention deletes
-- those that are over, each whole.
CREATE TABLE IF NOT EXISTS mutes (
    id       String,
    set_at   DateTime64(6, 'UTC'),
    begins   DateTime64(6, 'UTC'),
    ends     DateTime64(6, 'UTC'),
    alert    String,
    severity Nullable(String),
    tool     Nullable(String),
    region   Nullable(String),
    reason   String,
    author   Nullable(String)
) ENGINE = MergeTree
ORDER BY (id, set_at)
SETTINGS non_replicated_deduplication_window = 1000;
