-- A call path's function; enters: that one enters guests.
SELECT c.id, c.parent, CALLED_NAME(c, s) AS name,
	c.symbol IN (SELECT from_symbol FROM edge WHERE kind = 18 AND from_symbol IS NOT NULL) AS enters
FROM call_path c LEFT JOIN symbol s ON s.id = c.symbol WHERE c.id = :path;
