SELECT min(received_at) AS oldest FROM tool_calls;
