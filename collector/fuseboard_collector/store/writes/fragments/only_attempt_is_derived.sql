-- A call whose only attempt did not fail sends no attempt span; its attempt is derived, so that the
-- latency of attempts is not biased towards failures and every physical attempt has one row.
-- Whether it is derived must follow from the call alone: the attempt's span, where there is one,
-- may come in another batch. An attempt that was cut short (cancelled, left, interrupted) did not
-- succeed, but has no error class. A call that was cut short during back-off or in its fallback
-- had failed before, and that attempt has a span. Schemas hold this text as of when they were
-- applied: a change of it takes another schema file that makes their views anew.
AND attempts = 1
AND outcome NOT IN ('error', 'rejected', 'degraded')
AND coalesce(layer, 'tool') NOT IN ('retry', 'fallback')
