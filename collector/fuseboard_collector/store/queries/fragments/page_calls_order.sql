"end" DESC, span_id
