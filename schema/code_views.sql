-- code_views.sql - what to query about single instructions and source lines. As views.sql, after it.

-- One row per instruction that was executed, and version of its code. The sum of count is the trace's
-- insn_count, less what was executed of code that is not known.
CREATE VIEW insns AS
SELECT
	c.trace, m.name AS machine, c.ip + NUMBER_AT(c.insn, i.i + 1) AS ip,
	HEXADECIMAL((c.ip + NUMBER_AT(c.insn, i.i + 1))) AS ip_hex,
	c.count, c.insn_timed, c.cyc_count, round(c.insn_timed / nullif(c.cyc_count, 0), 2) AS ipc,
	s.name AS symbol, c.ip + NUMBER_AT(c.insn, i.i + 1) - s.start_ip AS "offset", d.name AS dso,
	c.ip + NUMBER_AT(c.insn, i.i + 1) - s.base AS dso_ip,
	substr(c.bytes, NUMBER_AT(c.insn, i.i + 1) + 1,
		coalesce(CODE_AT(c.insn, i.i + 2) - 1, length(c.bytes)) - NUMBER_AT(c.insn, i.i + 1)) AS bytes,
	f.name AS file, nullif(NUMBER_AT(c.line, i.i + 1), 0) AS line,
	s.demangled, coalesce(s.unnamed, c.symbol IS NULL) AS unnamed, c.symbol AS symbol_id,
	coalesce(c.version, 1) AS version, coalesce(c.bits, 64) AS bits, c.id AS code,
	coalesce(k.demangled, k.name) AS inlined, c.inlined_call
FROM code c
	LEFT JOIN symbol s ON s.id = c.symbol
	LEFT JOIN dso d ON d.id = s.dso
	LEFT JOIN machine m ON m.id = s.machine
	LEFT JOIN source_file f ON f.id = c.file
	LEFT JOIN inlined_call k ON k.id = c.inlined_call
	CROSS JOIN number i -- after what is the same for all of a row's
WHERE i.i < c.n;

-- One row per line of source code that was executed, where debug information says which it is. count: how
-- often its instruction that ran most often did, in each function that has code of it, inlined copies apart.
CREATE VIEW lines AS
SELECT trace, machine, file, line, sum(count) AS count, sum(insn_count) AS insn_count,
	sum(insn_timed) AS insn_timed, sum(cyc_count) AS cyc_count,
	round(sum(insn_timed) / nullif(sum(cyc_count), 0), 2) AS ipc,
	CASE WHEN count(DISTINCT function) = 1 THEN max(symbol) END AS symbol,
	count(DISTINCT function) AS functions,
	CASE WHEN min(dso) = max(dso) THEN max(dso) END AS dso,
	CASE WHEN count(DISTINCT function) = 1 THEN max(demangled) END AS demangled
FROM (
	SELECT trace, machine, dso, (SELECT y.first FROM symbol y WHERE y.id = symbol_id) AS function,
		symbol, demangled, file, line, max(count) AS count,
		sum(count) AS insn_count, sum(insn_timed) AS insn_timed, sum(cyc_count) AS cyc_count
	FROM insns WHERE line IS NOT NULL
	GROUP BY trace, machine, dso, symbol_id, file, line, inlined_call
)
GROUP BY trace, machine, file, line;
