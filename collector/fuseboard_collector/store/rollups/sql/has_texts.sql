-- Whether arguments of the window have a hash without a number. Blocks in which all have one are
-- passed over unread.
SELECT EXISTS (SELECT 1 FROM tool_calls
               WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
                 AND args_key IS NULL AND args_hash IS NOT NULL)
    OR EXISTS (SELECT 1 FROM arguments_6h WHERE args_key IS NULL)
    OR EXISTS (SELECT 1 FROM arguments_d WHERE args_key IS NULL);
