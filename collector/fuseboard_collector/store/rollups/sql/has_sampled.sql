-- Whether a row of the window stands for more or less than one call. Blocks of equal weights are
-- passed over unread.
SELECT EXISTS (SELECT 1 FROM tool_calls
               WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
                 AND (weight < 1 OR weight > 1))
    OR EXISTS (SELECT 1 FROM attempts  -- the others weigh what their calls do
               WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
                 AND span_id IS NOT NULL AND (weight < 1 OR weight > 1));
