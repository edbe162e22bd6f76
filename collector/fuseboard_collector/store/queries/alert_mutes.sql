-- The mutes that somebody set up to a moment and that end after it, the next to end first: the newest
-- row of each. Parameters: until.
WITH newest AS (
    SELECT id,
           @newest((alert, severity, tool, region, begins, ends, reason, author, set_at),
                   set_at) AS mute
    FROM mutes
    WHERE set_at <= $until::TIMESTAMP
    GROUP BY id
),
named AS (
    SELECT id, @item(mute, 1) AS alert, @item(mute, 2) AS severity, @item(mute, 3) AS tool,
           @item(mute, 4) AS region, @item(mute, 5) AS begins, @item(mute, 6) AS ends,
           @item(mute, 7) AS reason, @item(mute, 8) AS author, @item(mute, 9) AS set_at
    FROM newest
)
SELECT id, alert, severity, tool, region, begins, ends, reason, author, set_at
FROM named
WHERE ends > $until::TIMESTAMP
ORDER BY ends, id
LIMIT 1000;
