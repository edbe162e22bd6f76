SELECT count(*) AS amount, epoch_us(max(received_at)) AS newest FROM sightings;
