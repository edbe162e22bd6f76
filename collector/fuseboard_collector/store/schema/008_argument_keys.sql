-- Rolled up arguments by number too.
ALTER TABLE arguments_6h ADD COLUMN args_key UBIGINT;
ALTER TABLE arguments_d  ADD COLUMN args_key UBIGINT;
UPDATE arguments_6h SET args_key = @args_key(args_hash);
UPDATE arguments_d  SET args_key = @args_key(args_hash);
