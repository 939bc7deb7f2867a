-- SPDX-License-Identifier: MIT OR Apache-2.0
-- What did each kernel write, how many flushes were asked for, and how long was the wait for fsync?
WITH waited AS (
    SELECT recordings.kernel, recordings.filesystem, percentile_disc(0.5) WITHIN GROUP (ORDER BY calls.duration_ns) / 1000.0E0 AS fsync_p50_us
    FROM calls JOIN recordings ON calls.bundle_id = recordings.bundle_id
    WHERE calls.call IN ('fsync', 'fdatasync') AND calls.error = 0
    GROUP BY recordings.kernel, recordings.filesystem
), written AS (
    SELECT kernel, filesystem, count(*) AS recordings,
        CAST(sum(duration_ns) AS BIGINT) / 1.0E9 AS seconds,
        CAST(sum(write_bytes) AS BIGINT) AS write_bytes,
        CAST(sum(read_bytes) AS BIGINT) AS read_bytes,
        CAST(sum(flushes) AS BIGINT) AS flushes,
        CAST(sum(lost) AS BIGINT) AS lost
    FROM recordings
    GROUP BY kernel, filesystem
)
SELECT written.kernel, written.filesystem, recordings, seconds, write_bytes, read_bytes, flushes, lost, fsync_p50_us
FROM written LEFT JOIN waited
    ON coalesce(written.kernel, '') = coalesce(waited.kernel, '') AND coalesce(written.filesystem, '') = coalesce(waited.filesystem, '')
ORDER BY written.kernel NULLS LAST, written.filesystem NULLS LAST
