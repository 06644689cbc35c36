-- The CPUs.
SELECT DISTINCT cpu FROM slice WHERE trace = :trace AND cpu IS NOT NULL ORDER BY 1;
