SELECT service, instance, epoch_us(time)
FROM heartbeats
WHERE received_at >= (SELECT max(received_at) - to_seconds($window::DOUBLE) FROM heartbeats);
