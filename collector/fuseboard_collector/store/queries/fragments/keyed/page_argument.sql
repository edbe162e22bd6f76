COALESCE((SELECT MIN(args_hash)
          FROM (
              -- include page_all_calls
          ) AS raw_calls
          WHERE args_key IS NULL AND hash(args_hash) = worst.argument),
         'v1:' || printf('%016x', worst.argument))
