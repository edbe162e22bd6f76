(VALUES (50), (95), (99)) AS shares(share)
