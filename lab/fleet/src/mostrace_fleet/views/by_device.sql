-- SPDX-License-Identifier: MIT OR Apache-2.0
-- What did each kind of device write, and how long did its writes and its cache flushes take from issue to completion (microseconds)?
WITH took AS (
    SELECT bundle_id, op, d2c_ns FROM requests WHERE op IN ('write', 'device_flush') AND error = 0
)
SELECT recordings.disk, recordings.sectors, recordings.write_cache, took.op,
    count(DISTINCT recordings.bundle_id) AS recordings,
    count(*) AS requests,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY took.d2c_ns) / 1000.0E0 AS p50_us,
    percentile_disc(0.99) WITHIN GROUP (ORDER BY took.d2c_ns) / 1000.0E0 AS p99_us
FROM took JOIN recordings ON took.bundle_id = recordings.bundle_id
GROUP BY recordings.disk, recordings.sectors, recordings.write_cache, took.op
ORDER BY recordings.disk NULLS LAST, recordings.sectors NULLS LAST, recordings.write_cache NULLS LAST, took.op
