-- lcov: which lines of source code ran, and how often, as a tracefile of lcov (genhtml makes pages of it)
-- pt-query DB lcov >trace.info. Lines with 0 are of compilation units of which something ran: of others nothing is said.
-- Functions are those that ran. The counts of several traces in the database are added up.
-- :file = all; a source file's path, or the end of it
-- :dso = all; of one program or library: its name, or the end of it
-- format: lines
WITH source AS (
	SELECT id, name, trace, lines FROM source_file
	WHERE :file IS NULL OR name = :file OR name LIKE '%/' || :file
),
ran AS (
	SELECT file, line, sum(count) AS count
	FROM (SELECT file, line, max(count) AS count FROM insns
		WHERE line IS NOT NULL AND (:dso IS NULL OR dso = :dso OR dso LIKE '%/' || :dso)
		GROUP BY symbol_id, file, line) -- as the view lines
	GROUP BY file, line
),
line AS (
	SELECT file, line, max(count) AS count
	FROM (
		SELECT s.name AS file, NUMBER_AT(s.lines, k.i * 1024 + i.i + 1) AS line, 0 AS count
		FROM source s CROSS JOIN number k CROSS JOIN number i
		WHERE k.i <= length(s.lines) / 1024 AND k.i * 1024 + i.i < length(s.lines)
			AND s.name IN (SELECT file FROM ran)
		UNION ALL
		SELECT file, line, count FROM ran WHERE file IN (SELECT name FROM source)
	)
	GROUP BY file, line
),
function AS (
	SELECT file, min(line) AS line, symbol AS name, sum(count) AS count FROM insns
	WHERE "offset" = 0 AND line IS NOT NULL AND file IN (SELECT name FROM source)
		AND (:dso IS NULL OR dso = :dso OR dso LIKE '%/' || :dso)
	GROUP BY file, symbol
)
SELECT text FROM (
	SELECT file, 0 AS part, 0 AS line, '' AS name, 'TN:' AS text FROM line GROUP BY file
	UNION ALL SELECT file, 1, 0, '', 'SF:' || file FROM line GROUP BY file
	UNION ALL SELECT file, 2, line, name, 'FN:' || line || ',' || name FROM function
	UNION ALL SELECT file, 3, line, name, 'FNDA:' || count || ',' || name FROM function
	UNION ALL SELECT file, 4, 0, '', 'FNF:' || count(*) FROM function GROUP BY file
	UNION ALL SELECT file, 5, 0, '', 'FNH:' || sum(count > 0) FROM function GROUP BY file
	UNION ALL SELECT file, 6, line, '', 'DA:' || line || ',' || count FROM line
	UNION ALL SELECT file, 7, 0, '', 'LF:' || count(*) FROM line GROUP BY file
	UNION ALL SELECT file, 8, 0, '', 'LH:' || sum(count > 0) FROM line GROUP BY file
	UNION ALL SELECT file, 9, 0, '', 'end_of_record' FROM line GROUP BY file
)
ORDER BY file, part, line, name;
