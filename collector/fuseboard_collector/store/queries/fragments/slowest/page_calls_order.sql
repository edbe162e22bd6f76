duration_seconds DESC, "end" DESC, span_id
