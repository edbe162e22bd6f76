-- Rolled up arguments by number too. Rows of before have none; queries see to that.
ALTER TABLE arguments_6h ADD COLUMN args_key UBIGINT;
ALTER TABLE arguments_d  ADD COLUMN args_key UBIGINT;
