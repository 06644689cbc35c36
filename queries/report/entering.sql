-- Functions that enter guests: numbers of symbols.
SELECT DISTINCT from_symbol AS symbol FROM edge WHERE trace = :trace AND kind = 18 AND from_symbol IS NOT NULL;
