-- lcov: which lines of source code ran, and how often, as a tracefile of lcov (genhtml makes pages of it)
-- pt-query DB lcov >trace.info. Lines with 0 are of compilation units of which something ran: of others
-- nothing is said. Functions and conditional branches (BRDA: taken, then not taken) are those that ran. The
-- counts of several traces in the database are added up.
-- :file = all; a source file's path, or the end of it
-- :dso = all; of one program or library: its name, or the end of it
-- format: lines
CREATE MACRO IS_JCC(x) AS (x GLOB '7*' OR x GLOB 'E[0-3]*' OR x GLOB '0F8*' -- with a hint or BND, too
	OR x GLOB '[23]E7*' OR x GLOB '[23]E0F8*' OR x GLOB 'F27*' OR x GLOB 'F20F8*');
WITH source AS (
	SELECT id, name, trace, lines FROM source_file
	WHERE :file IS NULL OR name = :file OR name LIKE '%/' || :file
),
ran AS (
	SELECT file, line, sum(count) AS count
	FROM (SELECT file, line, max(count) AS count FROM insns
		WHERE line IS NOT NULL AND (:dso IS NULL OR dso = :dso OR dso LIKE '%/' || :dso)
		GROUP BY symbol_id, file, line, inlined_call) -- as the view lines
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
),
jcc AS MATERIALIZED (
	SELECT file, line, coalesce("offset", ip) AS place, symbol_id, sum(count) AS count, sum(coalesce((
		SELECT sum(e.taken) FROM edge e JOIN kind k ON k.id = e.kind
		WHERE e.from_ip = i.ip AND e.trace = i.trace AND e.from_symbol IS i.symbol_id
			AND k.name = 'jcc'), 0)) AS taken
	FROM (SELECT trace, ip, symbol_id, "offset", file, line, count, hex(substr(bytes, 1, 3)) AS code
		FROM insns
		WHERE line IS NOT NULL AND file IN (SELECT name FROM source)
			AND (:dso IS NULL OR dso = :dso OR dso LIKE '%/' || :dso)
		LIMIT -1) i -- so that code is made once
	WHERE IS_JCC(code)
	GROUP BY file, line, place, symbol_id
),
branch AS (
	SELECT file, line, row_number() OVER (PARTITION BY file, line ORDER BY symbol_id, place, n) - 1 AS k,
		CASE n WHEN 0 THEN taken ELSE count - taken END AS count
	FROM jcc CROSS JOIN (SELECT 0 AS n UNION ALL SELECT 1)
)
SELECT text FROM (
	SELECT file, 0 AS part, 0 AS line, '' AS name, 'TN:' AS text FROM line GROUP BY file
	UNION ALL SELECT file, 1, 0, '', 'SF:' || file FROM line GROUP BY file
	UNION ALL SELECT file, 2, line, name, 'FN:' || line || ',' || name FROM function
	UNION ALL SELECT file, 3, line, name, 'FNDA:' || count || ',' || name FROM function
	UNION ALL SELECT file, 4, 0, '', 'FNF:' || count(*) FROM function GROUP BY file
	UNION ALL SELECT file, 5, 0, '', 'FNH:' || sum(count > 0) FROM function GROUP BY file
	UNION ALL SELECT file, 6, line, printf('%09d', k), 'BRDA:' || line || ',0,' || k || ',' || count
		FROM branch
	UNION ALL SELECT file, 7, 0, '', 'BRF:' || count(*) FROM branch GROUP BY file
	UNION ALL SELECT file, 8, 0, '', 'BRH:' || sum(count > 0) FROM branch GROUP BY file
	UNION ALL SELECT file, 9, line, '', 'DA:' || line || ',' || count FROM line
	UNION ALL SELECT file, 10, 0, '', 'LF:' || count(*) FROM line GROUP BY file
	UNION ALL SELECT file, 11, 0, '', 'LH:' || sum(count > 0) FROM line GROUP BY file
	UNION ALL SELECT file, 12, 0, '', 'end_of_record' FROM line GROUP BY file
)
ORDER BY file, part, line, name;
