SELECT @keys FROM @these WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
