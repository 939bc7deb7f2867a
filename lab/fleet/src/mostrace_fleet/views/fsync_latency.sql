-- SPDX-License-Identifier: MIT OR Apache-2.0
-- How long do applications wait for durability? Times in microseconds, over all calls that did not fail.
SELECT recordings.filesystem, calls.call, count(DISTINCT calls.bundle_id) AS recordings,
    count(*) AS calls,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY calls.duration_ns) / 1000.0E0 AS p50_us,
    percentile_disc(0.99) WITHIN GROUP (ORDER BY calls.duration_ns) / 1000.0E0 AS p99_us,
    max(calls.duration_ns) / 1000.0E0 AS max_us
FROM calls JOIN recordings ON calls.bundle_id = recordings.bundle_id
WHERE calls.call IN ('fsync', 'fdatasync', 'sync', 'sync_range', 'msync', 'atomic_commit')
    AND calls.error = 0 AND calls.duration_ns IS NOT NULL
GROUP BY recordings.filesystem, calls.call
ORDER BY recordings.filesystem NULLS LAST, calls.call
