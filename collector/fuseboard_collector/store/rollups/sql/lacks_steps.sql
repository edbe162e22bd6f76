-- Whether a row of the window was stored before rows had their step. Blocks in which every row has
-- one are passed over unread.
SELECT EXISTS (SELECT 1 FROM tool_calls
               WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
                 AND step IS NULL);
