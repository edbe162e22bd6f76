(VALUES (99)) AS shares(share)
