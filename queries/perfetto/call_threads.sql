-- Each row of `thread`, and the one that its track is named by: idle threads have one tid, and a track each.
SELECT id, CASE WHEN tid = 0 THEN id ELSE first END FROM thread WHERE trace = :trace ORDER BY id;
