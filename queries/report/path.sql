-- A call path's function. symbol: its number.
SELECT c.id, c.parent, CALLED_NAME(c, s) AS name, c.symbol
FROM call_path c LEFT JOIN symbol s ON s.id = c.symbol WHERE c.id = :path;
